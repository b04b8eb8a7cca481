#include "app/agent/validation.h"

#include <algorithm>

#include "api/cdi/spec.h"
#include "app/devices/paths.h"
#include "backend/all.h"
#include "base/core/strings.h"
#include "base/log.h"
#include "node/cdi/folder.h"
#include "node/label/host_features.h"
#include "node/share/allocator.h"
#include "os/marker_files.h"

namespace penstock::app {
namespace {

/// Folders such as /dev also change for unrelated reasons.
constexpr base::Duration kGather = std::chrono::milliseconds(20);
constexpr base::Duration kRest = std::chrono::milliseconds(500);
/// By then all parts of a started agent have had their first answers, or will not have them soon.
constexpr base::Duration kStart = std::chrono::seconds(30);
constexpr base::Duration kRetry = std::chrono::seconds(30);
constexpr char kDeviceFiles[] = "device-files";  // of AllocatorReport::device_list

api::compat::DriverPlace PlaceOf(const api::PathsConfig& paths,
                                 const node::inventory::Snapshot& inventory) {
  const auto* vendor = inventory.FindVendor(api::compat::kNodeStatusVendor);
  if (vendor != nullptr && vendor->driver != nullptr && vendor->place != nullptr &&
      vendor->place->container)
    return {vendor->place->host_driver_root, vendor->place->host_dev_root};
  const std::string root =
      paths.host_driver_root.empty() ? paths.driver_root : paths.host_driver_root;
  if (!paths.host_dev_root.empty()) return {root, paths.host_dev_root};
  return {root, paths.dev_root.empty() ? root : paths.dev_root};
}

/// Whether the steps before the computation have passed, or there is nothing to check.
bool CanCompute(const std::vector<api::ValidationStep>& steps) {
  for (const api::ValidationStep& step : steps) {
    if (step.name == node::validate::kCompute) return true;
    if (step.state != "passed" && step.state != "skipped") return false;
  }
  return false;
}

std::string DriverInstances(const node::inventory::Snapshot& inventory) {
  std::string instances;
  for (const node::inventory::VendorEntry& vendor : inventory.vendors)
    instances += DriverInstance(vendor) + " ";
  return instances;
}

bool Lists(const api::AllocatorReport& kubelet, std::string_view way) {
  return std::ranges::find(kubelet.device_list, way) != kubelet.device_list.end();
}

/// Adds what a container of a pod gets with these devices without CDI: their files, which the
/// kubelet passes, and a variable that the vendor's runtime handler reads. That one gives the files
/// of the devices alone to a container that asks for no more.
void AddListed(ContainerCheck::Target& target, const device::Dialect& dialect,
               const std::vector<const device::Facts*>& devices, const device::Driver& driver,
               bool as_files, HostDevicePaths& host_path) {
  const device::Edits edits = dialect.ForContainer(devices, driver, device::DeviceNames::kIds);
  for (const device::Facts* facts : devices) target.devices.push_back(facts->id);
  target.environment.insert(edits.environment.begin(), edits.environment.end());
  for (const device::Edits::File& file : edits.files) {
    if (as_files)
      target.files.push_back({file.container_path, host_path(file.host_path), file.permissions});
    const auto is_file = [&file](const device::DeviceFile& one) {
      return one.path == file.host_path;
    };
    if (as_files || std::ranges::any_of(devices, [&](const device::Facts* facts) {
          return std::ranges::any_of(facts->files, is_file);
        }))
      target.promised.push_back(file.container_path);
  }
}

/// A container with each healthy device, as the kubelet gives it to pods. A device that has failed
/// is the health monitor's matter.
ContainerCheck::Target TargetOf(const api::Report& report,
                                const node::inventory::Snapshot& inventory, ContainerStart start,
                                const std::set<std::string>& named, HostDevicePaths host_path) {
  ContainerCheck::Target target{.start = std::move(start)};
  std::map<std::string, std::vector<const device::Facts*>> listed;
  const api::AllocatorReport* kubelet = api::AdvertisingAllocator(report);
  const bool by_field = kubelet == nullptr || Lists(*kubelet, ToString(api::DeviceList::kCdiCri));
  const bool by_cdi = by_field || Lists(*kubelet, ToString(api::DeviceList::kCdiAnnotations));
  target.by_annotation = by_cdi && !by_field;
  if (kubelet != nullptr) target.way = base::Join(kubelet->device_list, ",");
  for (const api::DeviceReport& device : report.devices) {
    const device::Dialect* dialect = backend::FindDialect(device.vendor);
    if (dialect == nullptr || device.health_state != "healthy" || device.parts > 0) continue;
    const node::inventory::Entry* entry = inventory.Find(device.id);
    if (by_cdi && named.contains(device.id))
      target.devices.push_back(node::cdi::KubeletKind(dialect->cdi_kind()) + "=" +
                               api::cdi::DeviceNameOf(device.id));
    if (!by_cdi && entry != nullptr) listed[device.vendor].push_back(entry->facts.get());
  }
  for (const auto& [name, devices] : listed) {
    const auto* vendor = inventory.FindVendor(name);
    if (vendor == nullptr || vendor->driver == nullptr) continue;
    const device::Dialect& dialect = *backend::FindDialect(name);
    AddListed(target, dialect, devices, *vendor->driver, Lists(*kubelet, kDeviceFiles), host_path);
    // A sandbox has one handler.
    if (listed.size() == 1 && Lists(*kubelet, ToString(api::DeviceList::kEnvvar)))
      target.handler = dialect.runtime_handler();
  }
  if (!by_cdi && ((target.files.empty() && target.handler.empty()) || target.promised.empty()))
    target.devices.clear();  // nothing is known to give it any
  target.instance = DriverInstances(inventory);
  return target;
}

bool IsWaiting(const api::ValidationStep& step) { return step.state == "waiting"; }

double Unix(base::WallTime time) {
  return base::Seconds(std::chrono::duration_cast<base::Duration>(time.time_since_epoch()));
}

}  // namespace

Validation::Validation(os::Loop& control, base::Executor& io, node::inventory::Inventory& inventory,
                       const api::NodeConfig& config, const std::string& programs,
                       std::function<void()> changed)
    : control_(control),
      io_(io),
      inventory_(inventory),
      changed_(std::move(changed)),
      compute_(control, backend::FindDialect, programs, [this] { changed_(); }),
      container_(control, io, [this] { changed_(); }) {
  status_.started = Unix(control.clock().Wall());
  Configure(config);
}

Validation::~Validation() {
  control_.Cancel(look_timer_);
  control_.Cancel(files_timer_);
}

void Validation::Configure(const api::NodeConfig& config) {
  node_config_ = std::make_shared<const api::NodeConfig>(config);
  driver_ = PlaceOf(config.paths, *inventory_.published().Get());
  compute_.Configure(config);
  container_.Configure(config);
  const api::ValidationConfig before = std::exchange(config_, config.validation);
  if (before == config_) return;
  ClearFolder(before.directory);
  to_clear_.erase(config_.directory);
  folder_watch_.reset();
  if (!config_.directory.empty())
    folder_watch_ =
        std::make_unique<os::PathWatch>(control_, config_.directory, [this] { UpdateFiles(); });
  UpdateFiles();
}

void Validation::Begin() {
  discovered_ = true;
  Look();
}

void Validation::Serve(const std::vector<api::NodeConfig>& last) {
  serves_ = true;
  for (const api::NodeConfig& config : last) ClearFolder(config.validation.directory);
  served_at_ = control_.clock().Now();
  // Whatever has not answered by then is judged as it is.
  control_.PostAfter(kStart, lifetime_.Guard([this] { UpdateFiles(); }));
}

/// Which files are wanted follows from facts, and from which devices are gone.
void Validation::DevicesChanged() {
  const auto snapshot = inventory_.published().Get();
  std::set<std::string> gone;
  for (const auto& entry : snapshot->devices)
    if (entry.health.state == device::HealthState::kGone) gone.insert(entry.facts->id);
  const bool other =
      std::exchange(facts_generation_, snapshot->facts_generation) != snapshot->facts_generation;
  if ((std::exchange(gone_, std::move(gone)) != gone_ || other) && discovered_) Look();
}

void Validation::Look() {
  if (std::exchange(looking_, true)) {
    again_ = true;
    return;
  }
  looked_at_ = control_.clock().Now();
  const auto inventory = inventory_.published().Get();
  auto wanted = node::validate::WantedFiles(*inventory, backend::FindDialect);
  const std::string instances = DriverInstances(*inventory);
  const bool same = std::exchange(looked_in_, instances) == instances;
  // The watches are of what was at their paths when they began, which another root has covered.
  if (!same) watches_.clear();
  Watch(wanted);
  const auto take =
      lifetime_.Guard([this](const node::validate::StandingFiles& files) { Looked(files); });
  io_.Post([take, &control = control_, root = DevRootOf(node_config_->paths),
            before = same && files_ ? *files_ : node::validate::StandingFiles(),
            wanted = std::move(wanted)] {
    control.Post([take, files = node::validate::LookAt(root, wanted, before)] { take(files); });
  });
}

void Validation::Looked(const node::validate::StandingFiles& files) {
  looking_ = false;
  if (files_ != files) {
    files_ = files;
    changed_();
  }
  if (std::exchange(again_, false)) LookSoon();
}

void Validation::LookSoon() {
  if (look_timer_ != 0) return;
  const auto rested = control_.clock().Now() - looked_at_;
  look_timer_ = control_.PostAfter(std::max(kGather, kRest - rested), [this] {
    look_timer_ = 0;
    Look();
  });
}

void Validation::Watch(const std::vector<node::validate::WantedFile>& wanted) {
  std::set<std::string> folders;
  for (const auto& file : wanted)
    folders.insert(base::FolderOf(OpenedPath(
        file.dev_root.empty() ? DevRootOf(node_config_->paths) : file.dev_root, file.path)));
  std::erase_if(watches_, [&](const auto& watch) { return !folders.contains(watch.first); });
  for (const std::string& folder : folders)
    if (!watches_.contains(folder))
      watches_.emplace(folder,
                       std::make_unique<os::PathWatch>(control_, folder, [this] { LookSoon(); }));
}

std::map<std::string, int> Validation::OnBus(const std::optional<os::MachineFacts>& machine) const {
  std::map<std::string, int> counts;
  if (!machine) return counts;
  for (const device::Dialect* dialect : backend::Dialects()) {
    int& count = counts[std::string(dialect->vendor())];
    for (const os::PciFunction& function : machine->pci)
      if (function.vendor == dialect->pci_vendor() &&
          node::label::IsAcceleratorClass(function.class_code))
        ++count;
  }
  return counts;
}

std::vector<api::ValidationStep> Validation::Judge(const api::Report& report,
                                                   OfContainers containers,
                                                   const std::optional<os::MachineFacts>& machine) {
  const auto inventory = inventory_.published().Get();
  const device::DialectOf dialect_of = backend::FindDialect;
  auto on_bus = OnBus(machine);
  node::validate::Inputs inputs{.inventory = *inventory,
                                .dialect_of = dialect_of,
                                .discovered = discovered_,
                                .on_bus = on_bus,
                                .files = files_ ? &*files_ : nullptr,
                                .toolkit = std::move(containers.toolkit),
                                .compute = compute_.facts()};
  // First: until the first container has answered, the step waits.
  if (serves_ && containers.start && inputs.toolkit.named != nullptr &&
      node::validate::CanTryContainer(report, inputs))
    container_.Follow(TargetOf(report, *inventory, *std::move(containers.start),
                               *inputs.toolkit.named, HostDevicePaths(node_config_, inventory)),
                      containers.changing);
  else
    container_.GiveUp();
  inputs.container = container_.facts();
  std::vector<api::ValidationStep> steps = node::validate::Validate(report, inputs);
  if (serves_ && CanCompute(steps)) compute_.Follow(report, *inventory);
  Stamp(steps);
  status_.Take(report, steps, on_bus, Unix(control_.clock().Wall()));
  const api::compat::DriverPlace place = PlaceOf(node_config_->paths, *inventory);
  const bool elsewhere = std::exchange(driver_, place) != place;
  if (std::exchange(steps_, steps) != steps || elsewhere) UpdateFiles();
  return steps;
}

void Validation::Stamp(std::vector<api::ValidationStep>& steps) {
  const std::string now = base::FormatTime(control_.clock().Wall());
  for (api::ValidationStep& step : steps) {
    auto& [state, since] = since_[step.name];
    if (state != step.state) {
      if (!state.empty() && step.state != "passed")
        base::Log(step.state == "failed" ? base::kWarn : base::kInfo, "validation step changed",
                  {{"step", step.name}, {"state", step.state}, {"why", step.reason}});
      state = step.state;
      since = now;
    }
    step.since = since;
  }
}

std::vector<api::compat::NodeStatusMetric> Validation::Metrics() const {
  if (!config_.exporter_names || steps_.empty()) return {};
  return api::compat::NodeStatusMetrics(status_, Unix(control_.clock().Wall()));
}

bool Validation::IsStarting() const {
  return !settled_ && (!served_at_ || control_.clock().Now() - *served_at_ < kStart);
}

void Validation::ClearFolder(const std::string& folder) {
  if (!folder.empty() && folder != config_.directory) to_clear_.insert(folder);
}

void Validation::UpdateFiles() {
  if (!serves_ || steps_.empty()) return;
  if (!IsStarting() || std::ranges::none_of(steps_, IsWaiting)) settled_ = true;
  if (std::exchange(updating_, true)) {
    update_again_ = true;
    return;
  }
  const std::vector<std::string> all(api::compat::ValidationFileNames().begin(),
                                     api::compat::ValidationFileNames().end());
  const bool keeps = !settled_ && steps_.front().state != "failed";
  const auto done =
      lifetime_.Guard([this](const std::set<std::string>& cleared, const std::string& problem) {
        FilesUpdated(cleared, problem);
      });
  io_.Post([done, &control = control_, to_clear = to_clear_, folder = config_.directory, all, keeps,
            wanted = api::compat::ValidationFiles(steps_, driver_)] {
    std::set<std::string> cleared;
    std::vector<std::string> problems;
    const auto succeeded = [&problems](const base::Status& updated) {
      if (!updated.ok()) problems.push_back(updated.error().message());
      return updated.ok();
    };
    for (const std::string& one : to_clear)
      if (os::IsSame(one, folder) || succeeded(os::UpdateMarkers(one, {}, all)))
        cleared.insert(one);
    if (!folder.empty())
      succeeded(os::UpdateMarkers(folder, wanted, keeps ? std::vector<std::string>() : all));
    control.Post([done, cleared, problem = base::Join(problems, "; ")] { done(cleared, problem); });
  });
}

void Validation::FilesUpdated(const std::set<std::string>& cleared, const std::string& problem) {
  updating_ = false;
  std::erase_if(to_clear_, [&](const std::string& folder) { return cleared.contains(folder); });
  if (std::exchange(problem_, problem) != problem && !problem.empty())
    base::Log(base::kWarn, "cannot keep the files of the validation", {{"why", problem}});
  if (!problem.empty() && files_timer_ == 0)
    files_timer_ = control_.PostAfter(kRetry, [this] {
      files_timer_ = 0;
      UpdateFiles();
    });
  if (std::exchange(update_again_, false)) UpdateFiles();
}

}  // namespace penstock::app
