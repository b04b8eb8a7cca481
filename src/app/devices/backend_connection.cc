#include "app/devices/backend_connection.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "app/devices/paths.h"
#include "backend/all.h"
#include "base/core/strings.h"
#include "base/log.h"
#include "node/label/host_features.h"
#include "os/folder_instance.h"
#include "os/machine_facts.h"

namespace penstock::app {

namespace {

constexpr std::size_t kMaxPending = 4096;
constexpr base::Duration kFabricAgain = std::chrono::seconds(1);

/// A link counts, too, wherever it leads: below a driver's root that is not this process's own,
/// absolute links are of that root. So does what cannot be looked at.
bool IsThere(const std::string& path) {
  std::error_code unused;
  return std::filesystem::symlink_status(path, unused).type() !=
         std::filesystem::file_type::not_found;
}

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

base::Status MayStart(const device::Dialect& dialect, const device::Paths& paths) {
  const device::DriverSign sign = dialect.SignOfDriver(paths);
  const bool has_sign =
      sign.path.empty()
          ? !paths.library.empty() || std::ranges::any_of(dialect.DriverPaths(paths), IsThere)
          : IsThere(sign.path);
  if (has_sign) return {};
  bool has_device = false, has_others = false;
  for (const os::PciFunction& function :
       os::ReadPciFunctions(paths.sysfs_root, /*with_config=*/false)) {
    if (!node::label::IsAcceleratorClass(function.class_code)) continue;
    if (function.vendor == dialect.pci_vendor()) {
      has_device = true;
    } else {
      has_others |= std::ranges::find(backend::Dialects(), function.vendor,
                                      &device::Dialect::pci_vendor) != backend::Dialects().end();
    }
  }
  const bool anywhere = sign.path.empty();
  if (anywhere && has_device) return {};
  return base::Error(base::Code::kNotFound,
                     has_device || (anywhere && !has_others) ? sign.absent : "");
}

BackendConnection::BackendConnection(os::Loop& control, base::Executor& io,
                                     const api::NodeConfig& config, const std::string& worker,
                                     const device::Dialect& dialect,
                                     node::inventory::Inventory& inventory,
                                     node::health::Monitor& monitor)
    : control_(control),
      dialect_(dialect),
      vendor_(dialect.vendor()),
      inventory_(inventory),
      monitor_(monitor),
      paths_(config.paths),
      library_(api::OfVendor(config.paths.libraries, vendor_)),
      worker_(worker),
      restricted_(config.restrict_workers),
      root_(control, io, {config, vendor_}, dialect,
            [this](const DriverRoot& before) { RootChanged(before); }),
      remote_(control, {.command = Command(),
                        .may_start = [this] { return MayStart(dialect_, this->paths()); }}),
      discovery_(control, remote_, inventory,
                 {.vendor = vendor_,
                  .poll = config.health.poll,
                  .sysfs_root = config.paths.sysfs_root,
                  .place = [this] { return Place(); }},
                 {.reading =
                      [this](const std::string& id, const auto& reading, base::Duration ago) {
                        monitor_.OnReading(id, reading, ago);
                        if (evidence_about_.erase(id) > 0) ReadFabricOf(id);
                      },
                  .evidence = [this](const device::Evidence& evidence) { OnEvidence(evidence); },
                  .described =
                      [this](bool fresh) {
                        if (fresh) DriverOpened();
                      }}) {}

void BackendConnection::Start(std::function<void()> first_look, std::function<void()> judged) {
  judged_ = std::move(judged);
  discovery_.OnFirstScan(std::move(first_look));
  started_ = true;
  WatchPaths();
  discovery_.Start();
}

device::Paths BackendConnection::paths() const {
  return PathsOf(PathsIn(paths_, root_.now()), library_);
}

std::vector<std::string> BackendConnection::Command() const {
  return WorkerCommand(worker_, vendor_, paths(), restricted_);
}

/// Also where the driver is not now: it may appear there.
std::set<std::string> BackendConnection::WatchedPaths() const {
  std::set<std::string> all;
  const auto add = [&](const api::PathsConfig& paths) {
    for (std::string& path : dialect_.DriverPaths(PathsOf(paths, library_)))
      all.insert(std::move(path));
  };
  add(paths_);
  if (!paths_.driver_container_root.empty())
    add(PathsIn(paths_,
                {.container = true, .place = paths_.driver_container_root, .own_dev = true}));
  return all;
}

void BackendConnection::WatchPaths() {
  watches_.clear();
  const auto refresh = [this] {
    base::Log(base::kDebug, "the driver's files changed", {{"vendor", vendor_}});
    root_.Look();
    discovery_.Refresh();
  };
  for (const std::string& path : WatchedPaths())
    watches_.push_back(std::make_unique<os::PathWatch>(control_, path, refresh));
}

/// The watches are of what was at their paths when they began, which a mount has covered.
void BackendConnection::RootChanged(const DriverRoot& before) {
  if (started_) WatchPaths();
  if (SameRoot(before, root_.now())) return;
  base::Log(base::kInfo, "the driver's root changed",
            {{"vendor", vendor_},
             {"source", root_.now().container ? "container" : "host"},
             {"root", paths().driver_root}});
  remote_.SetCommand(Command());
  if (moved_) moved_();
  if (started_) discovery_.Restart();
}

std::shared_ptr<const node::inventory::DriverLocation> BackendConnection::Place() const {
  return PlaceIn(paths_, root_.now(), ModuleInstance());
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
  evidence_about_.insert(id);
  // What the driver requires after an error of a part, it reports of the whole device.
  const auto snapshot = inventory_.published().Get();
  if (const auto* entry = snapshot->Find(id); entry != nullptr)
    for (const auto& whole : entry->ancestors) discovery_.ReadSoon(whole.device);
}

/// Some drivers reset all devices of a fabric together. They are read after the one that the
/// evidence is about, by which a backend knows which began; in a storm of evidence not each time.
void BackendConnection::ReadFabricOf(const std::string& id) {
  const base::TimePoint now = control_.clock().Now();
  if (now - fabric_read_ < kFabricAgain) {
    evidence_about_.insert(id);  // after its next reading
    return;
  }
  fabric_read_ = now;
  const auto snapshot = inventory_.published().Get();
  const auto* entry = snapshot->Find(id);
  if (entry == nullptr) return;
  for (const device::Link& link : entry->facts->links)
    if (link.fabric_lanes > 0) discovery_.ReadSoon(link.peer);
}

/// The driver's folders in sysfs are created again each time its module is loaded.
std::string BackendConnection::ModuleInstance() const {
  std::vector<std::string> instances;
  for (const std::string& path : dialect_.DriverPaths(paths()))
    if (path.starts_with(paths_.sysfs_root + "/"))
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
