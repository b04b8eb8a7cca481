// A function for each step. A step is about the node: a device that failed is the health monitor's
// matter, and the others remain usable.
#include "node/validate/validate.h"

#include <algorithm>

#include "api/allocators.h"
#include "base/core/strings.h"

namespace penstock::node::validate {
namespace {

using api::AllocatorReport;
using api::DeviceReport;
using api::Report;
using Step = api::ValidationStep;

constexpr char kPassed[] = "passed", kFailed[] = "failed", kWaiting[] = "waiting",
               kSkipped[] = "skipped";
constexpr std::size_t kShown = 3;  // causes in one reason

Step Make(std::string_view name, const char* state, std::string reason, std::string remedy = "") {
  return {std::string(name), state, std::move(reason), std::move(remedy), ""};
}

std::string Several(std::vector<std::string> causes) {
  const std::size_t more = causes.size() > kShown ? causes.size() - kShown : 0;
  causes.resize(causes.size() - more);
  return base::Join(causes, "; ") + (more > 0 ? "; and " + std::to_string(more) + " more" : "");
}

/// Null where the kubelet gets no devices from this agent.
const AllocatorReport* Kubelet(const Report& report) {
  const AllocatorReport* kubelet = api::AdvertisingAllocator(report);
  return kubelet == nullptr || kubelet->state == "closed" ? nullptr : kubelet;
}

/// Vendors without which this node has no accelerator: those of known devices. Where none is known,
/// those of accelerators on the bus: beside a vendor with devices these may be a display.
std::set<std::string> NeededVendors(const Report& report, const Inputs& inputs) {
  std::set<std::string> needed;
  for (const DeviceReport& device : report.devices) needed.insert(device.vendor);
  if (!needed.empty()) return needed;
  for (const auto& [vendor, count] : inputs.on_bus)
    if (count > 0) needed.insert(vendor);
  return needed;
}

Step Driver(const Report& report, const Inputs& inputs) {
  std::set<std::string> needed = NeededVendors(report, inputs);
  std::vector<std::string> missing, unusable, loaded;
  for (const api::VendorReport& vendor : report.vendors) {
    if (needed.erase(vendor.vendor) == 0) continue;
    const std::string why = vendor.vendor + ": " + vendor.reason;
    if (vendor.driver.empty())
      missing.push_back(why);
    else if (!vendor.reason.empty())
      unusable.push_back(why);
    else
      loaded.push_back(vendor.vendor + " " + vendor.driver +
                       (vendor.driver_source == "container"
                            ? " of the driver container in " + vendor.driver_root
                            : ""));
  }
  if (!missing.empty())
    return Make(kDriver, kFailed, Several(missing),
                "load the driver's kernel module, or start its driver container");
  if (!unusable.empty())
    return Make(kDriver, kFailed, Several(unusable),
                "reboot, or load the kernel module that belongs to the installed libraries");
  // The bus is known before the drivers are.
  if (!inputs.discovered && (loaded.empty() || !needed.empty()))
    return Make(kDriver, kWaiting, "the drivers have not been looked for yet");
  if (loaded.empty()) return Make(kDriver, kSkipped, "this node has no accelerator");
  return Make(kDriver, kPassed, base::Join(loaded, ", "));
}

Step DeviceNodes(const Inputs& inputs) {
  if (inputs.files == nullptr)
    return Make(kDeviceNodes, kWaiting, "the device files have not been looked at yet");
  const std::vector<WantedFile> wanted = WantedFiles(inputs.inventory, inputs.dialect_of);
  if (wanted.empty()) return Make(kDeviceNodes, kSkipped, "no device needs a device file");
  // Files of devices that appeared since the last look are looked at soon.
  if (!std::ranges::all_of(wanted,
                           [&](const auto& one) { return inputs.files->contains(one.path); }))
    return Make(kDeviceNodes, kWaiting, "new device files have not been looked at yet");
  std::vector<std::string> reasons, remedies;
  for (const FileProblem& problem : ProblemsOf(wanted, *inputs.files)) {
    reasons.push_back(problem.reason);
    if (!problem.remedy.empty() && std::ranges::find(remedies, problem.remedy) == remedies.end())
      remedies.push_back(problem.remedy);
  }
  if (!reasons.empty()) return Make(kDeviceNodes, kFailed, Several(reasons), Several(remedies));
  return Make(kDeviceNodes, kPassed, std::to_string(wanted.size()) + " device files");
}

Step Fabric(const Inputs& inputs) {
  using State = device::FabricPlace::State;
  std::vector<std::string> failed, joining;
  std::string remedy;
  std::size_t joined = 0;
  for (const inventory::Entry& entry : inputs.inventory.devices) {
    const device::Dialect* dialect = inputs.dialect_of(entry.facts->vendor);
    if (dialect == nullptr || entry.health.state == device::HealthState::kGone) continue;
    const device::FabricPlace place = dialect->FabricOf(*entry.facts);
    const std::string number = NumberOf(*entry.facts);
    const std::string why =
        "device " + (number.empty() ? entry.facts->id : number) + ": " + place.reason;
    joined += place.state == State::kJoined ? 1 : 0;
    if (place.state == State::kFailed) failed.push_back(why);
    if (place.state == State::kJoining) joining.push_back(why);
    if (!place.remedy.empty()) remedy = place.remedy;
  }
  if (!failed.empty()) return Make(kFabric, kFailed, Several(failed), remedy);
  if (!joining.empty()) return Make(kFabric, kWaiting, Several(joining), remedy);
  if (joined == 0) return Make(kFabric, kSkipped, "no device reports a fabric");
  return Make(kFabric, kPassed, std::to_string(joined) + " devices have joined their fabric");
}

/// The devices on which a program can compute: those that are present and not divided.
std::vector<const DeviceReport*> ComputingDevices(const Report& report, const Inputs& inputs) {
  std::vector<const DeviceReport*> devices;
  for (const DeviceReport& device : report.devices) {
    const device::Dialect* dialect = inputs.dialect_of(device.vendor);
    if (dialect != nullptr && !dialect->compute_program().empty() && device.parts == 0 &&
        device.health_state != "gone")
      devices.push_back(&device);
  }
  return devices;
}

/// A device that cannot compute leaves the others usable.
Step Compute(const Report& report, const Inputs& inputs) {
  const ComputeFacts& facts = inputs.compute;
  if (!facts.off.empty()) return Make(kCompute, kSkipped, facts.off);
  const auto devices = ComputingDevices(report, inputs);
  if (devices.empty()) return Make(kCompute, kSkipped, "no device is there to compute on");
  std::size_t computed = 0, in_use = 0, waiting = 0;
  std::vector<std::string> failed;
  for (const DeviceReport* device : devices) {
    const auto outcome = facts.outcomes.find(device->id);
    if (outcome != facts.outcomes.end() && outcome->second.computed) {
      ++computed;
    } else if (outcome != facts.outcomes.end()) {
      failed.push_back(device->id + ": " + outcome->second.why);
    } else {
      ++(facts.in_use.contains(device->id) ? in_use : waiting);
    }
  }
  const std::string of_all = " of " + std::to_string(devices.size()) + " devices ";
  if (waiting > 0)
    return Make(kCompute, kWaiting, std::to_string(waiting) + of_all + "are being tried");
  if (computed == 0 && !failed.empty())
    return Make(kCompute, kFailed, Several(failed),
                "see the kernel's log; `penstock-vectoradd --device ID` tries a device again");
  // What was so before the agent started again stays so while pods have the devices.
  if (computed == 0) return Make(kCompute, kPassed, "all devices are in use: none was tried");
  std::string text = std::to_string(computed) + of_all + "have computed";
  if (in_use > 0) text += "; " + std::to_string(in_use) + " were in use";
  if (!failed.empty()) text += "; not " + Several(failed);
  return Make(kCompute, kPassed, text);
}

/// Whether containers of a vendor with present devices need programs of Penstock as they start.
bool NeedsHooks(const Inputs& inputs) {
  return std::ranges::any_of(inputs.inventory.devices, [&](const inventory::Entry& entry) {
    const inventory::VendorEntry* vendor = inputs.inventory.FindVendor(entry.facts->vendor);
    const device::Dialect* dialect = inputs.dialect_of(entry.facts->vendor);
    return dialect != nullptr && vendor != nullptr && vendor->driver != nullptr &&
           !dialect->DriverForContainers(*vendor->driver).hooks.empty();
  });
}

/// Healthy devices that no specification names yet. Divided devices are not offered themselves.
std::vector<std::string> Unnamed(const Report& report, const Toolkit& toolkit) {
  std::vector<std::string> ids;
  for (const DeviceReport& device : report.devices)
    if (device.health_state == "healthy" && device.parts == 0 &&
        !(toolkit.named != nullptr && toolkit.named->contains(device.id)))
      ids.push_back(device.id);
  return ids;
}

Step Specifications(const Report& report, const Inputs& inputs) {
  const Toolkit& toolkit = inputs.toolkit;
  if (const auto unnamed = Unnamed(report, toolkit); !unnamed.empty()) {
    if (!toolkit.problems.empty())
      return Make(kToolkit, kFailed, Several(toolkit.problems),
                  "`penstock runtime doctor` examines the CDI specifications");
    return Make(kToolkit, kWaiting,
                "no CDI specification names these devices yet: " + Several(unnamed));
  }
  if (!toolkit.why_no_hook.empty() && NeedsHooks(inputs))
    return Make(kToolkit, kFailed, "CDI specifications have no hooks: " + toolkit.why_no_hook,
                "install penstock-hook, or name it in cdi.hook");
  return Make(kToolkit, kPassed, base::Join(report.cdi.kinds, ", ") + " in " + report.cdi.folder);
}

bool ByCdi(const AllocatorReport& kubelet) {
  return std::ranges::any_of(kubelet.device_list,
                             [](const std::string& one) { return one.starts_with("cdi"); });
}

/// As far as it is known without a container.
Step Prepared(const Report& report, const Inputs& inputs) {
  const Toolkit& toolkit = inputs.toolkit;
  const AllocatorReport* kubelet = Kubelet(report);
  if (!toolkit.engine_problem.empty())
    return Make(kToolkit, kFailed, toolkit.engine_problem,
                "`penstock runtime doctor` examines the engine");
  if (kubelet == nullptr) {
    if (!toolkit.off.empty())
      return Make(kToolkit, kSkipped, "no CDI specifications are written: " + toolkit.off);
    return Specifications(report, inputs);
  }
  if (kubelet->device_list.empty())
    return Make(kToolkit, kWaiting,
                kubelet->device_list_reason.empty() ? "the container engine was not asked yet"
                                                    : kubelet->device_list_reason);
  const std::string how =
      base::Join(kubelet->device_list, ", ") +
      (kubelet->device_list_reason.empty() ? "" : " (" + kubelet->device_list_reason + ")");
  if (!ByCdi(*kubelet)) return Make(kToolkit, kPassed, "containers get devices by " + how);
  if (!toolkit.off.empty())
    return Make(kToolkit, kFailed,
                "containers get devices by " + how +
                    ", and no CDI specifications are written: " + toolkit.off,
                "set cdi.enabled to on, or let the agent write to paths.cdiRoot");
  Step step = Specifications(report, inputs);
  if (step.state == kPassed) step.reason += "; containers get devices by " + how;
  return step;
}

Step ToolkitOf(const Report& report, const Inputs& inputs) {
  using State = ContainerFacts::State;
  const ContainerFacts& container = inputs.container;
  const AllocatorReport* kubelet = Kubelet(report);
  Step step = Prepared(report, inputs);
  if (step.state != kPassed || kubelet == nullptr) return step;
  switch (container.state) {
    case State::kWaiting:
      return Make(kToolkit, kWaiting, "a container with the devices has not answered yet");
    case State::kFailed:
      return Make(kToolkit, kFailed, Several(container.why),
                  "see the engine's log; `penstock runtime doctor` examines the engine and the CDI "
                  "specifications");
    case State::kOpened:
      step.reason += "; a container opened " + std::to_string(container.opened) + " device files";
      if (container.unserved > 0)
        step.reason +=
            ", and may open " + std::to_string(container.unserved) + " that no driver serves";
      if (!container.remark.empty()) step.reason += " (" + container.remark + ")";
      break;
    case State::kNotTried:
      step.reason += "; no container tried it: " + Several(container.why);
      break;
    case State::kNone:
      if (!ByCdi(*kubelet)) step.reason += "; none is started to try that";
      break;
  }
  return step;
}

Step Plugin(const Report& report) {
  const AllocatorReport* kubelet = Kubelet(report);
  if (kubelet == nullptr)
    return Make(kPlugin, kSkipped, "the kubelet gets no devices from this agent");
  const bool any = std::ranges::any_of(report.devices, [](const DeviceReport& device) {
    return api::FindAllocator(device.allocator).advertises;
  });
  if (!any) return Make(kPlugin, kSkipped, "no device is assigned to the kubelet");
  if (kubelet->state == "open")
    return Make(kPlugin, kPassed,
                "the kubelet has the list of " + base::Join(kubelet->resources, ", "));
  if (kubelet->state == "stepped-back")
    return Make(kPlugin, kFailed, kubelet->reason, "remove the other device plugin from this node");
  return Make(kPlugin, kWaiting,
              kubelet->reason.empty() ? "the kubelet does not read the list yet" : kubelet->reason);
}

/// At least one device can be used.
Step Devices(const Report& report) {
  std::size_t usable = 0, whole = 0;
  std::vector<std::string> causes;
  for (const DeviceReport& device : report.devices) {
    if (device.parts > 0) continue;
    ++whole;
    const std::string& why =
        device.health_state != "healthy" ? device.health_reason : device.withheld;
    if (device.health_state == "healthy" && (device.withheld.empty() || !device.resource.empty())) {
      ++usable;
    } else {
      causes.push_back(device.id + ": " + (why.empty() ? device.health_state : why));
    }
  }
  if (usable == 0)
    return Make(kDevices, kFailed,
                causes.empty() ? "there is no device" : "no device can be used: " + Several(causes),
                "`penstock status -o wide` shows the state of each device");
  return Make(kDevices, kPassed,
              std::to_string(usable) + " of " + std::to_string(whole) + " can be used" +
                  (causes.empty() ? "" : "; not " + Several(causes)));
}

bool Stops(const Step& step) { return step.state == kFailed || step.state == kWaiting; }

}  // namespace

bool CanTryContainer(const Report& report, const Inputs& inputs) {
  const AllocatorReport* kubelet = Kubelet(report);
  return kubelet != nullptr && kubelet->state == "open" &&
         Driver(report, inputs).state == kPassed && !Stops(DeviceNodes(inputs)) &&
         Prepared(report, inputs).state == kPassed;
}

std::vector<Step> Validate(const Report& report, const Inputs& inputs) {
  const std::string_view rest[] = {kDeviceNodes, kFabric, kCompute, kToolkit, kPlugin, kDevices};
  std::vector<Step> steps = {Driver(report, inputs)};
  if (steps.front().state != kPassed) {
    const bool stops = Stops(steps.front());
    for (const std::string_view name : rest)
      steps.push_back(Make(name, stops ? kWaiting : kSkipped,
                           stops ? "waits for the driver" : steps.front().reason));
    return steps;
  }
  steps.push_back(DeviceNodes(inputs));
  const bool files_stop = Stops(steps.back());
  steps.push_back(Fabric(inputs));
  steps.push_back(
      files_stop || Stops(steps.back())
          ? Make(kCompute, kWaiting,
                 std::string("waits for the ") + (files_stop ? "device files" : "fabric"))
          : Compute(report, inputs));
  steps.push_back(files_stop ? Make(kToolkit, kWaiting, "waits for the device files")
                             : ToolkitOf(report, inputs));
  const Step plugin = Plugin(report);
  // The kubelet's list waits for what containers need.
  steps.push_back(plugin.state == kWaiting && Stops(steps.back())
                      ? Make(kPlugin, kWaiting, "waits for the toolkit")
                      : plugin);
  steps.push_back(Devices(report));
  return steps;
}

}  // namespace penstock::node::validate
