// The reasons are stable, because users write alerts on them.
#include "view/node_events.h"

#include <algorithm>

#include "api/allocators.h"
#include "base/core/printable.h"
#include "base/core/strings.h"
#include "view/conditions.h"

namespace penstock::view {

namespace {

using api::DeviceReport;
using api::Report;

/// An Event's message has at most 1024 bytes (core/v1 validation).
std::string Cut(const std::string& text) { return base::Shortened(text, 1000); }

std::string Name(const DeviceReport& device) {
  const std::string number = NumberOf(device);
  return device.model + (number.empty() ? " " : " " + number + ", ") + device.id;
}

bool HasDriver(const Report& report, const std::string& vendor) {
  return std::ranges::any_of(report.vendors, [&vendor](const api::VendorReport& entry) {
    return entry.vendor == vendor && !entry.driver.empty();
  });
}

NodeEvent EventOf(const DeviceReport& device, const std::string& before) {
  const std::string why = device.health_reason.empty() ? "" : ": " + device.health_reason;
  if (device.health_state == "unhealthy")
    return {true, "DeviceUnhealthy", Cut(Name(device) + " is unhealthy" + why)};
  if (device.health_state == "gone")
    return {true, "DeviceGone", Cut(Name(device) + " is gone" + why)};
  if (before == "gone") return {false, "DeviceBack", Name(device) + " is back"};
  const std::string relapses =
      device.relapses == 0 ? "" : ", after " + std::to_string(device.relapses) + " relapses";
  return {false, "DeviceRecovered",
          Name(device) + " passed its probation without faults and is healthy again" + relapses};
}

}  // namespace

void ReportEvents::Remember(const Report& before) {
  (void)Take(before);
  begun_ = remembered_ = true;
}

std::vector<NodeEvent> ReportEvents::Next(const Report& now,
                                          const std::vector<node::health::Notice>& notices) {
  std::vector<NodeEvent> events = Take(now);
  if (!begun_) events.clear();
  for (const node::health::Notice& notice : notices) {
    if (notice.number < next_notice_) continue;
    next_notice_ = notice.number + 1;
    events.push_back({notice.warning, notice.reason, Cut(notice.message)});
  }
  begun_ = true;
  remembered_ = false;
  return events;
}

std::vector<NodeEvent> ReportEvents::Take(const Report& now) {
  std::vector<NodeEvent> events;
  Drivers(now, events);
  Devices(now, events);
  Allocators(now, events);
  Servers(now, events);
  Configuration(now, events);
  Layout(now, events);
  Validation(now, events);
  return events;
}

void ReportEvents::Drivers(const Report& now, std::vector<NodeEvent>& events) {
  for (const api::VendorReport& vendor : now.vendors) {
    const auto [known, added] = drivers_.try_emplace(vendor.vendor, vendor.driver);
    if (added || known->second == vendor.driver) continue;
    known->second = vendor.driver;
    if (vendor.driver.empty()) {
      events.push_back({true, "DriverMissing",
                        Cut("the driver of " + vendor.vendor + " is missing: " + vendor.reason)});
    } else {
      events.push_back({false, "DriverLoaded",
                        "the driver of " + vendor.vendor + " is loaded, version " + vendor.driver});
    }
  }
}

/// Devices that disappear and return together with their driver cause no events of their own.
void ReportEvents::Devices(const Report& now, std::vector<NodeEvent>& events) {
  for (const DeviceReport& device : now.devices) {
    const std::string& state = device.health_state;
    if (state != "healthy" && state != "unhealthy" && state != "gone") continue;
    if (state == "gone" && !HasDriver(now, device.vendor)) continue;
    const auto [known, added] = devices_.try_emplace(device.id, "healthy");
    if (known->second == state) continue;
    events.push_back(EventOf(device, known->second));
    known->second = state;
  }
}

void ReportEvents::Allocators(const Report& now, std::vector<NodeEvent>& events) {
  for (const api::AllocatorReport& allocator : now.allocators) {
    const api::Allocator& row = api::FindAllocator(allocator.name);
    if (row.condition.empty() || (allocator.state != "open" && allocator.state != "stepped-back"))
      continue;
    const auto [known, added] = allocators_.try_emplace(allocator.name, "open");
    if (known->second == allocator.state) continue;
    known->second = allocator.state;
    if (allocator.state == "stepped-back") {
      events.push_back({true, "OtherPluginServes", Cut("waiting: " + allocator.reason)});
    } else {
      events.push_back({false, std::string(row.condition) + "Open",
                        "this agent now serves " + std::string(row.in_words) + ": " +
                            base::Join(allocator.resources, ", ")});
    }
  }
}

/// A server that starts is not ready either: reports only a server that was ready, or whose reason
/// changed to something other than starting.
void ReportEvents::Servers(const Report& now, std::vector<NodeEvent>& events) {
  std::map<std::string, Server> after;
  for (const api::ServerReport& server : now.servers) {
    if (server.state == "ending") continue;
    const auto known = servers_.find(server.set);
    Server next{server.state, server.reason, known != servers_.end() && known->second.reported};
    const bool was_ready = known != servers_.end() && known->second.state == "ready";
    const bool other_reason = known != servers_.end() && !known->second.reason.empty() &&
                              known->second.reason != server.reason;
    if (server.state == "ready") {
      next.reported = false;
      if (!was_ready)
        events.push_back(
            {false, "SharingServerReady", server.kind + " of " + server.set + " is ready"});
    } else if (!next.reported && (was_ready || other_reason)) {
      next.reported = true;
      events.push_back(
          {true, "SharingServerNotReady",
           Cut(server.kind + " of " + server.set + " is not ready: " + server.reason)});
    }
    after[server.set] = std::move(next);
  }
  servers_ = std::move(after);
}

void ReportEvents::Configuration(const Report& now, std::vector<NodeEvent>& events) {
  const api::ConfigurationReport before = std::exchange(configuration_, now.configuration);
  const api::ConfigurationReport& after = now.configuration;
  if (before.problem == after.problem && before.problem_origin == after.problem_origin &&
      before.origin == after.origin && before.remarks == after.remarks &&
      (before.since == after.since || remembered_))
    return;
  if (after.problem.empty()) {
    const std::string in_force = after.origin + " is in force";
    events.push_back(after.remarks.empty()
                         ? NodeEvent{false, "ConfigurationApplied", Cut(in_force)}
                         : NodeEvent{false, "ConfigurationAppliedWithRemarks",
                                     Cut(in_force + "; " + base::Join(after.remarks, "; "))});
  } else {
    events.push_back({true, "ConfigurationRefused",
                      Cut(RefusalOf(after) + "; the previous configuration stays in force")});
  }
}

/// What is pending becomes the one or the other.
void ReportEvents::Layout(const Report& now, std::vector<NodeEvent>& events) {
  if (now.layout.state == "pending" || now.layout == layout_) return;
  layout_ = now.layout;
  if (now.layout.state == "success")
    events.push_back({false, "LayoutApplied", Cut("devices are divided as " + now.layout.name)});
  if (now.layout.state == "failed")
    events.push_back(
        {true, "LayoutFailed",
         Cut("devices are not divided as " + now.layout.name + ": " + now.layout.reason)});
}

/// A step that waits will be known soon, and says nothing about a step that failed before.
void ReportEvents::Validation(const Report& now, std::vector<NodeEvent>& events) {
  for (const api::ValidationStep& step : now.validation) {
    if (step.state != "passed" && step.state != "failed") continue;
    const auto [known, added] = steps_.try_emplace(step.name, "passed");
    if (known->second == step.state) continue;
    known->second = step.state;
    if (step.state == "passed") {
      events.push_back({false, "ValidationPassed",
                        Cut("the step " + step.name + " passed again: " + step.reason)});
    } else {
      events.push_back({true, "ValidationFailed",
                        Cut("the step " + step.name + " failed: " + step.reason +
                            (step.remedy.empty() ? "" : "; " + step.remedy))});
    }
  }
}

}  // namespace penstock::view
