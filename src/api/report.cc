// Converts the report to JSON and back. The keys are stable (docs/reference/report.md): add keys,
// never rename them.
#include "api/report.h"

#include "api/report_json.h"

namespace penstock::api {

namespace {

using Json = nlohmann::ordered_json;
using internal::ForEach;
using internal::Take;

Json IndexJson(int index) { return index < 0 ? Json(nullptr) : Json(index); }

Json ToJsonValue(const HolderReport& holder) {
  return {{"slot", holder.slot},
          {"device", holder.device},
          {"index", IndexJson(holder.index)},
          {"state", holder.state},
          {"kind", holder.kind},
          {"lease", holder.lease},
          {"pids", holder.pids},
          {"user", holder.user},
          {"command", holder.command},
          {"pod", holder.pod},
          {"namespace", holder.namespace_name},
          {"container", holder.container},
          {"enforcement", holder.enforcement},
          {"since", holder.since},
          {"note", holder.note}};
}

Json HoldersOf(const std::vector<HolderReport>& holders) {
  Json list = Json::array();
  for (const HolderReport& holder : holders) list.push_back(ToJsonValue(holder));
  return list;
}

Json ToJsonValue(const DeviceReport& device) {
  return {{"id", device.id},
          {"vendor", device.vendor},
          {"model", device.model},
          {"index", IndexJson(device.index)},
          {"pci", device.pci},
          {"numa", device.numa ? Json(*device.numa) : Json(nullptr)},
          {"memoryBytes", device.memory_bytes},
          {"health",
           {{"state", device.health_state},
            {"reason", device.health_reason},
            {"since", device.health_since}}},
          {"allocator", device.allocator},
          {"door", device.allocator},
          {"withheld", device.withheld},
          {"serial", device.serial},
          {"resource", device.resource},
          {"sharing", device.sharing},
          {"shares", device.shares},
          {"free", device.free},
          {"isolation", device.isolation},
          {"shareMemoryBytes", device.share_memory_bytes},
          {"shareComputePercent", device.share_compute_percent},
          {"probationUntil", device.probation_until},
          {"relapses", device.relapses},
          {"replaced", device.replaced},
          {"telemetryProblem", device.telemetry_problem},
          {"holders", HoldersOf(device.holders)},
          {"graphicsProcesses", HoldersOf(device.graphics)}};
}

Json ToJsonValue(const AllocatorReport& allocator) {
  return {{"name", allocator.name},
          {"state", allocator.state},
          {"reason", allocator.reason},
          {"resources", allocator.resources},
          {"enforcement", allocator.enforcement},
          {"deviceList", allocator.device_list},
          {"deviceListReason", allocator.device_list_reason},
          {"closedCgroups", allocator.closed_cgroups},
          {"closedCgroupsProblem", allocator.closed_problem}};
}

Json ToJsonValue(const ServerReport& server) {
  return {{"set", server.set},       {"kind", server.kind},       {"state", server.state},
          {"reason", server.reason}, {"clients", server.clients}, {"devices", server.devices}};
}

Json ToJsonValue(const VendorReport& vendor) {
  return {{"vendor", vendor.vendor},
          {"driver", vendor.driver},
          {"runtime", vendor.runtime},
          {"reason", vendor.reason}};
}

Json ToJsonValue(const ConfigurationReport& configuration) {
  Json object = {{"origin", configuration.origin},
                 {"since", configuration.since},
                 {"problem", configuration.problem},
                 {"problemOrigin", configuration.problem_origin},
                 {"notYet", configuration.not_yet}};
  if (!configuration.remarks.empty()) object["remarks"] = configuration.remarks;
  if (!configuration.waiting.empty()) object["waiting"] = configuration.waiting;
  return object;
}

Json ToJsonValue(const CdiReport& cdi) {
  return {{"folder", cdi.folder},
          {"kinds", cdi.kinds},
          {"problems", cdi.problems},
          {"remarks", cdi.remarks}};
}

Json ToJsonValue(const UnavailableMetric& metric) {
  return {{"name", metric.name}, {"models", metric.models}, {"reason", metric.reason}};
}

Json ToJsonValue(const ConditionReport& condition) {
  return {{"type", condition.type},
          {"status", condition.status},
          {"reason", condition.reason},
          {"message", condition.message},
          {"since", condition.since}};
}

template <typename T>
Json ListOf(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(ToJsonValue(item));
  return list;
}

/// A command line may be invalid UTF-8: invalid bytes become U+FFFD.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

HolderReport ParseHolder(const Json& json) {
  HolderReport holder;
  Take(json, "slot", holder.slot);
  Take(json, "device", holder.device);
  Take(json, "index", holder.index);
  Take(json, "state", holder.state);
  Take(json, "kind", holder.kind);
  Take(json, "lease", holder.lease);
  Take(json, "pids", holder.pids);
  Take(json, "user", holder.user);
  Take(json, "command", holder.command);
  Take(json, "pod", holder.pod);
  Take(json, "namespace", holder.namespace_name);
  Take(json, "container", holder.container);
  Take(json, "enforcement", holder.enforcement);
  Take(json, "since", holder.since);
  Take(json, "note", holder.note);
  return holder;
}

DeviceReport ParseDevice(const Json& json) {
  DeviceReport device = internal::ReadDevice(json);
  Take(json, "shares", device.shares);
  ForEach(json, "holders",
          [&](const Json& holder) { device.holders.push_back(ParseHolder(holder)); });
  ForEach(json, "graphicsProcesses",
          [&](const Json& holder) { device.graphics.push_back(ParseHolder(holder)); });
  return device;
}

ConditionReport ParseCondition(const Json& json) {
  ConditionReport condition = internal::ReadCondition(json);
  Take(json, "status", condition.status);
  Take(json, "since", condition.since);
  return condition;
}

UnavailableMetric ParseUnavailable(const Json& json) {
  UnavailableMetric metric;
  Take(json, "name", metric.name);
  Take(json, "models", metric.models);
  Take(json, "reason", metric.reason);
  return metric;
}

Report ParseWhole(const Json& json) {
  Report report;
  json.at("generation").get_to(report.generation);
  for (const char* needed : {"devices", internal::AllocatorsKey(json)})
    (void)json.at(needed).get_ref<const Json::array_t&>();
  Take(json, "node", report.node);
  Take(json, "agentPid", report.agent_pid);
  internal::ReadCommon(json, report);
  ForEach(json, "devices",
          [&](const Json& device) { report.devices.push_back(ParseDevice(device)); });
  ForEach(json, "holdersOfRemovedDevices",
          [&](const Json& holder) { report.removed.push_back(ParseHolder(holder)); });
  ForEach(json, "unavailableMetrics", [&](const Json& metric) {
    report.unavailable_metrics.push_back(ParseUnavailable(metric));
  });
  ForEach(json, "conditions",
          [&](const Json& condition) { report.conditions.push_back(ParseCondition(condition)); });
  return report;
}

}  // namespace

std::string ToJson(const Report& report) {
  Json json = {{"generation", report.generation},
               {"node", report.node},
               {"version", report.version},
               {"agentPid", report.agent_pid},
               {"vendors", ListOf(report.vendors)},
               {"devices", ListOf(report.devices)},
               {"holdersOfRemovedDevices", HoldersOf(report.removed)},
               {"allocators", ListOf(report.allocators)},
               {"doors", ListOf(report.allocators)},
               {"servers", ListOf(report.servers)},
               {"cdi", ToJsonValue(report.cdi)},
               {"configuration", ToJsonValue(report.configuration)},
               {"conditions", ListOf(report.conditions)},
               {"enforcement", report.enforcement}};
  if (!report.unavailable_metrics.empty())
    json["unavailableMetrics"] = ListOf(report.unavailable_metrics);
  return Dump(json);
}

std::string HoldersToJson(const Report& report) {
  std::vector<HolderReport> holders, graphics;
  for (const DeviceReport& device : report.devices) {
    holders.insert(holders.end(), device.holders.begin(), device.holders.end());
    graphics.insert(graphics.end(), device.graphics.begin(), device.graphics.end());
  }
  holders.insert(holders.end(), report.removed.begin(), report.removed.end());
  return Dump({{"holders", HoldersOf(holders)}, {"graphicsProcesses", HoldersOf(graphics)}});
}

base::Result<Report> ParseReport(std::string_view json) {
  try {
    return ParseWhole(Json::parse(json));
  } catch (const nlohmann::json::exception& exception) {
    return base::Error(base::Code::kDataLoss,
                       std::string("this is not a report of an agent: ") + exception.what());
  }
}

}  // namespace penstock::api
