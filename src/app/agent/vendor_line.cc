// Wiring of one vendor.
#include "app/agent/vendor_line.h"

#include "app/agent/paths.h"
#include "base/log.h"

namespace penstock::app {

std::vector<std::string> WorkerCommand(const std::string& worker, std::string_view vendor, const device::Paths& paths) {
  return {worker,         std::string(vendor), "--driver-root", paths.driver_root, "--nvml-library", paths.library,
          "--sysfs-root", paths.sysfs_root,    "--dev-root",    paths.dev_root,    "--proc-root",    paths.proc_root};
}

VendorLine::VendorLine(os::Loop& control, const api::NodeConfig& config, const std::string& worker, const device::Dialect& dialect,
                       node::inventory::Inventory& inventory, node::health::Monitor& monitor)
    : control_(control),
      dialect_(dialect),
      vendor_(dialect.vendor()),
      inventory_(inventory),
      monitor_(monitor),
      driver_paths_(dialect.DriverPaths(PathsOf(config))),
      remote_(control, {.command = WorkerCommand(worker, dialect.vendor(), PathsOf(config))}),
      discovery_(control, remote_, inventory, {.vendor = vendor_, .poll = config.health.poll},
                 {.reading = [this](const std::string& id, const device::Reading& reading) { monitor_.OnReading(id, reading); },
                  .evidence = [this](const device::Evidence& evidence) { Hear(evidence); },
                  .described =
                      [this](bool fresh) {
                        if (fresh) DriverOpened();
                      }}) {}

void VendorLine::Start(std::function<void()> first_look) {
  discovery_.OnFirstLook(std::move(first_look));
  const auto look = [this] {
    base::Log(base::kDebug, "the driver's files changed", {{"vendor", vendor_}});
    discovery_.Nudge();
  };
  for (const std::string& path : driver_paths_) watches_.push_back(std::make_unique<os::PathWatch>(control_, path, look));
  discovery_.Start();
}

void VendorLine::Hear(const device::Evidence& evidence) {
  const std::string id = monitor_.OnEvidence(evidence);
  if (!id.empty()) discovery_.ReadSoon(id);
}

void VendorLine::DriverOpened() {
  const auto snapshot = inventory_.published().Get();
  if (const auto* vendor = snapshot->FindVendor(vendor_); vendor != nullptr && vendor->driver != nullptr)
    monitor_.OnDriverOpened(vendor_, vendor->driver->version);
}

}  // namespace penstock::app
