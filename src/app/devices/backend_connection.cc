#include "app/devices/backend_connection.h"

#include <algorithm>
#include <utility>

#include "app/devices/paths.h"
#include "base/core/strings.h"
#include "base/log.h"
#include "os/folder_instance.h"

namespace penstock::app {

namespace {

constexpr std::size_t kMaxPending = 4096;

}  // namespace

std::vector<std::string> WorkerCommand(const std::string& worker, std::string_view vendor,
                                       const device::Paths& paths, bool restricted) {
  std::vector<std::string> command = {
      worker,           std::string(vendor), "--driver-root", paths.driver_root, "--sysfs-root",
      paths.sysfs_root, "--dev-root",        paths.dev_root,  "--proc-root",     paths.proc_root};
  if (!paths.library.empty()) command.insert(command.end(), {"--library", paths.library});
  if (restricted) command.emplace_back("--restrict-system-calls");
  return command;
}

BackendConnection::BackendConnection(os::Loop& control, const api::NodeConfig& config,
                                     const std::string& worker, const device::Dialect& dialect,
                                     node::inventory::Inventory& inventory,
                                     node::health::Monitor& monitor)
    : control_(control),
      dialect_(dialect),
      vendor_(dialect.vendor()),
      inventory_(inventory),
      monitor_(monitor),
      sysfs_root_(config.paths.sysfs_root),
      driver_paths_(dialect.DriverPaths(PathsOf(config, vendor_))),
      remote_(control, {.command = WorkerCommand(worker, vendor_, PathsOf(config, vendor_),
                                                 config.restrict_workers)}),
      discovery_(
          control, remote_, inventory,
          {.vendor = vendor_, .poll = config.health.poll, .sysfs_root = config.paths.sysfs_root},
          {.reading = [this](const std::string& id,
                             const device::Reading& reading) { monitor_.OnReading(id, reading); },
           .evidence = [this](const device::Evidence& evidence) { OnEvidence(evidence); },
           .described =
               [this](bool fresh) {
                 if (fresh) DriverOpened();
               }}) {}

void BackendConnection::Start(std::function<void()> first_look, std::function<void()> judged) {
  judged_ = std::move(judged);
  discovery_.OnFirstScan(std::move(first_look));
  const auto refresh = [this] {
    base::Log(base::kDebug, "the driver's files changed", {{"vendor", vendor_}});
    discovery_.Refresh();
  };
  for (const std::string& path : driver_paths_)
    watches_.push_back(std::make_unique<os::PathWatch>(control_, path, refresh));
  discovery_.Start();
}

void BackendConnection::OnEvidence(const device::Evidence& evidence, base::Duration ago) {
  if (!discovery_.session() && !monitor_.Knows(evidence)) {
    pending_.push_back({evidence, control_.clock().Now(), ago});
    if (pending_.size() > kMaxPending) pending_.pop_front();
    return;
  }
  const std::string id = monitor_.OnEvidence(evidence, ago);
  if (id.empty()) return;
  discovery_.ReadSoon(id);
  // What the driver requires after an error of a part, it reports of the whole device.
  const auto snapshot = inventory_.published().Get();
  if (const auto* entry = snapshot->Find(id); entry != nullptr)
    for (const auto& whole : entry->ancestors) discovery_.ReadSoon(whole.device);
}

/// The driver's folders in sysfs are created again each time its module is loaded.
std::string BackendConnection::ModuleInstance() const {
  std::vector<std::string> instances;
  for (const std::string& path : driver_paths_)
    if (path.starts_with(sysfs_root_ + "/"))
      if (std::string instance = os::FolderInstance(path); !instance.empty())
        instances.push_back(std::move(instance));
  return base::Join(instances, " ");
}

void BackendConnection::DriverOpened() {
  const auto snapshot = inventory_.published().Get();
  if (const auto* vendor = snapshot->FindVendor(vendor_);
      vendor != nullptr && vendor->driver != nullptr)
    monitor_.OnDriverOpened(vendor_, {vendor->driver->version, ModuleInstance()});
  const base::TimePoint now = control_.clock().Now();
  for (const Pending& one : std::exchange(pending_, {}))
    monitor_.OnEvidence(one.evidence, std::max<base::Duration>(one.ago + (now - one.at),
                                                               std::chrono::milliseconds(1)));
  judged_();
}

}  // namespace penstock::app
