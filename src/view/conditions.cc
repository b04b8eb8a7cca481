// Each condition has a function of its own; Ready repeats checks of the others.
#include "view/conditions.h"

#include <algorithm>

#include "api/allocators.h"
#include "base/core/printable.h"
#include "base/core/strings.h"

namespace penstock::view {

namespace {

using api::AllocatorReport;
using api::ConditionReport;
using api::DeviceReport;
using api::Report;

constexpr std::size_t kNamed = 3;  // devices that a message names

/// At most 1000 bytes, printable.
std::string CutText(const std::string& text) {
  return base::Printable(base::Shortened(text, 1000));
}

bool HasDevices(const Report& report, const std::string& vendor) {
  return std::ranges::any_of(
      report.devices, [&vendor](const DeviceReport& device) { return device.vendor == vendor; });
}

/// A driver is required for each vendor whose devices are known; where no device is known, a driver
/// of any vendor suffices.
ConditionReport DriverReady(const Report& report) {
  std::vector<std::string> missing, unusable, reasons;
  bool some = false;
  for (const auto& vendor : report.vendors) {
    some |= !vendor.driver.empty();
    const std::string why = vendor.vendor + ": " + vendor.reason;
    if (vendor.driver.empty()) {
      reasons.push_back(why);
      if (HasDevices(report, vendor.vendor)) missing.push_back(why);
    } else if (!vendor.reason.empty()) {
      unusable.push_back(why);
    }
  }
  if (!missing.empty())
    return {.type = "DriverReady",
            .status = false,
            .reason = "DriverMissing",
            .message = base::Join(missing, "; ")};
  if (!unusable.empty())
    return {.type = "DriverReady",
            .status = false,
            .reason = "DriverUnusable",
            .message = base::Join(unusable, "; ")};
  if (!some)
    return {.type = "DriverReady",
            .status = false,
            .reason = "NoDriver",
            .message = base::Join(reasons, "; ")};
  return {.type = "DriverReady", .status = true, .reason = "DriverLoaded"};
}

std::string Sentence(const DeviceReport& device) {
  const std::string reason =
      device.health_reason.empty() ? device.health_state : device.health_reason;
  const std::string number = NumberOf(device);
  return device.id + (number.empty() ? "" : " (index " + number + ")") + ": " + reason;
}

/// The worst state gives the reason: faults that can be repaired on the node come before unknown
/// states.
ConditionReport DevicesHealthy(const Report& report) {
  ConditionReport condition{.type = "DevicesHealthy",
                            .status = true,
                            .reason = report.devices.empty() ? "NoDevices" : "AllHealthy"};
  std::vector<std::string> bad;
  for (const auto& [state, reason] : {std::pair{"unhealthy", "DeviceUnhealthy"},
                                      {"gone", "DeviceGone"},
                                      {"unknown", "DeviceUnknown"}}) {
    for (const DeviceReport& device : report.devices) {
      if (device.health_state != state) continue;
      if (bad.empty()) condition.reason = reason;
      bad.push_back(Sentence(device));
    }
  }
  if (bad.empty()) return condition;
  condition.status = false;
  const std::size_t more = bad.size() > kNamed ? bad.size() - kNamed : 0;
  bad.resize(bad.size() - more);
  condition.message =
      base::Join(bad, "; ") + (more > 0 ? "; and " + std::to_string(more) + " more" : "");
  return condition;
}

ConditionReport ConfigurationApplied(const Report& report) {
  const auto& configuration = report.configuration;
  if (!configuration.waiting.empty() && configuration.problem.empty())
    return {.type = "ConfigurationApplied",
            .status = false,
            .reason = "Waiting",
            .message = configuration.waiting};
  if (!configuration.problem.empty())
    return {.type = "ConfigurationApplied",
            .status = false,
            .reason = "Refused",
            .message = RefusalOf(configuration)};
  if (!configuration.not_yet.empty())
    return {.type = "ConfigurationApplied",
            .status = true,
            .reason = "AppliedInPart",
            .message = configuration.origin +
                       "; not supported yet: " + base::Join(configuration.not_yet, ", ")};
  if (!configuration.remarks.empty())
    return {.type = "ConfigurationApplied",
            .status = true,
            .reason = "AppliedWithRemarks",
            .message = configuration.origin + "; " + base::Join(configuration.remarks, "; ")};
  return {.type = "ConfigurationApplied",
          .status = true,
          .reason = "Applied",
          .message = configuration.origin};
}

ConditionReport LayoutApplied(const api::LayoutReport& layout) {
  const bool failed = layout.state == "failed", done = layout.state == "success";
  return {.type = "LayoutApplied",
          .status = done,
          .reason = done     ? "Applied"
                    : failed ? "Failed"
                             : "Pending",
          .message = DescribeLayout(layout)};
}

ConditionReport AllocatorOpen(std::string_view type, const AllocatorReport& allocator) {
  const bool open = allocator.state == "open";
  return {.type = std::string(type),
          .status = open,
          .reason = open                                ? "Open"
                    : allocator.state == "stepped-back" ? "SteppedBack"
                                                        : "Waiting",
          .message = allocator.reason};
}

/// Servers that are no longer needed do not count, however long they take to end.
ConditionReport SharingReady(const Report& report) {
  ConditionReport condition{.type = "SharingReady", .status = true, .reason = "ServersReady"};
  std::vector<std::string> waiting;
  for (const auto& server : report.servers)
    if (server.state == "waiting")
      waiting.push_back(server.kind + " of " + server.set + ": " + server.reason);
  if (waiting.empty()) return condition;
  condition.status = false;
  condition.reason = "ServerNotReady";
  condition.message = base::Join(waiting, "; ");
  return condition;
}

/// "DeviceNodes" for "device-nodes".
std::string Capitalized(const std::string& step) {
  std::string name;
  bool capital = true;
  for (const char c : step) {
    if (c != '-') name += capital && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    capital = c == '-';
  }
  return name;
}

/// The first failed step gives the reason, else the first one that waits.
ConditionReport AcceleratorsReady(const std::vector<api::ValidationStep>& steps) {
  ConditionReport condition{.type = "AcceleratorsReady", .status = api::AllPassed(steps)};
  for (const auto& [state, end] : {std::pair{"failed", "Failed"}, {"waiting", "Waiting"}}) {
    const auto step = std::ranges::find(steps, state, &api::ValidationStep::state);
    if (step == steps.end()) continue;
    condition.reason = Capitalized(step->name) + end;
    condition.message = CutText(step->name + ": " + step->reason +
                                (step->remedy.empty() ? "" : "; " + step->remedy));
    return condition;
  }
  condition.reason = condition.status ? "AllStepsPassed" : "NoAccelerators";
  return condition;
}

/// Something can be allocated: a healthy device with a loaded driver, through an allocator that is
/// open.
ConditionReport Ready(const Report& report, const ConditionReport& driver) {
  ConditionReport condition{.type = "Ready", .status = false};
  const auto is_open = [&report](const std::string& name) {
    const AllocatorReport* allocator = api::AllocatorIn(report, name);
    return allocator != nullptr && allocator->state == "open";
  };
  const auto usable = [](const DeviceReport& device) {
    return device.health_state == "healthy" && device.parts == 0 &&
           (device.withheld.empty() || !device.resource.empty());
  };
  if (!driver.status) {
    condition.reason = driver.reason;
    condition.message = driver.message;
  } else if (std::ranges::none_of(report.devices, usable)) {
    condition.reason = report.devices.empty() ? "NoDevices" : "NoDeviceUsable";
  } else if (std::ranges::none_of(report.devices, [&](const DeviceReport& device) {
               return usable(device) && is_open(device.allocator);
             })) {
    condition.reason = "NoDoorOpen";
    for (const AllocatorReport& allocator : report.allocators)
      if (allocator.state != "open" && allocator.state != "closed" && condition.message.empty())
        condition.message = allocator.name + ": " + allocator.reason;
  } else {
    condition.status = true;
    condition.reason = "Ready";
  }
  return condition;
}

}  // namespace

std::string DescribeLayout(const api::LayoutReport& layout) {
  return CutText(layout.name + (layout.reason.empty() ? "" : ": " + layout.reason));
}

std::string RefusalOf(const api::ConfigurationReport& configuration) {
  const std::string& origin = configuration.problem_origin;
  const std::string name = origin.substr(0, origin.find(" ("));
  const bool named = origin.empty() || configuration.problem.find(name) != std::string::npos;
  return named ? configuration.problem : origin + ": " + configuration.problem;
}

std::vector<ConditionReport> ConditionsOf(const Report& report) {
  const ConditionReport driver = DriverReady(report);
  std::vector<ConditionReport> conditions = {Ready(report, driver), driver, DevicesHealthy(report),
                                             ConfigurationApplied(report)};
  if (!report.layout.name.empty()) conditions.push_back(LayoutApplied(report.layout));
  for (const AllocatorReport& allocator : report.allocators)
    if (const std::string_view type = api::FindAllocator(allocator.name).condition;
        !type.empty() && allocator.state != "closed")
      conditions.push_back(AllocatorOpen(type, allocator));
  if (std::ranges::any_of(report.servers,
                          [](const auto& server) { return server.state != "ending"; }))
    conditions.push_back(SharingReady(report));
  if (!report.validation.empty()) conditions.push_back(AcceleratorsReady(report.validation));
  return conditions;
}

void ConditionTimes::Stamp(std::vector<ConditionReport>& conditions, base::WallTime now) {
  for (ConditionReport& condition : conditions) {
    const auto [known, added] =
        known_.try_emplace(condition.type, condition.status, base::FormatTime(now));
    if (!added && known->second.first != condition.status)
      known->second = {condition.status, base::FormatTime(now)};
    condition.since = known->second.second;
  }
}

}  // namespace penstock::view
