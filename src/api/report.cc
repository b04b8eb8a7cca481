// Converts the report to JSON and back. The keys are stable (docs/reference/report.md): add keys,
// never rename them.
#include "api/report.h"

#include <algorithm>

#include "api/allocators.h"
#include "api/report_json.h"
#include "base/core/json_text.h"

namespace penstock::api {

// Found by their arguments from templates, so not in the unnamed namespace.

template <typename Visit, base::Of<HolderReport> Holder>
static void VisitFields(const Visit& visit, Holder& holder) {
  visit("slot", holder.slot);
  visit("device", holder.device);
  visit.Index("index", holder.index);
  visit.IfAny("number", holder.number);
  visit("state", holder.state);
  visit("kind", holder.kind);
  visit("lease", holder.lease);
  visit("pids", holder.pids);
  visit("user", holder.user);
  visit("command", holder.command);
  visit("pod", holder.pod);
  visit("namespace", holder.namespace_name);
  visit("container", holder.container);
  visit("enforcement", holder.enforcement);
  visit("since", holder.since);
  visit("note", holder.note);
}

template <typename Visit, base::Of<ConditionReport> Condition>
static void VisitFields(const Visit& visit, Condition& condition) {
  visit("type", condition.type);
  visit("status", condition.status);
  visit("reason", condition.reason);
  visit("message", condition.message);
  visit("since", condition.since);
}

template <typename Visit, base::Of<UnavailableMetric> Metric>
static void VisitFields(const Visit& visit, Metric& metric) {
  visit("name", metric.name);
  visit("models", metric.models);
  visit("reason", metric.reason);
}

namespace {

using Json = nlohmann::ordered_json;
using internal::FieldReader;
using internal::FieldWriter;
using internal::ForEach;
using internal::ReadList;
using internal::Take;

template <typename T>
Json ToJsonValue(const T& item) {
  Json json;
  VisitFields(FieldWriter<Json>{json}, item);
  return json;
}

template <typename T>
Json ListOf(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(ToJsonValue(item));
  return list;
}

template <>
Json ToJsonValue(const DeviceReport& device) {
  Json json;
  VisitFields(FieldWriter<Json>{json}, device);
  json["holders"] = ListOf(device.holders);
  json["graphicsProcesses"] = ListOf(device.graphics);
  return json;
}

template <>
Json ToJsonValue(const ConfigurationReport& configuration) {
  Json json;
  VisitFields(FieldWriter<Json>{json}, configuration);
  if (!configuration.remarks.empty()) json["remarks"] = configuration.remarks;
  if (!configuration.waiting.empty()) json["waiting"] = configuration.waiting;
  return json;
}

DeviceReport ParseDevice(const Json& json) {
  DeviceReport device;
  VisitFields(FieldReader<Json>{json}, device);
  ReadList(json, "holders", device.holders);
  ReadList(json, "graphicsProcesses", device.graphics);
  return device;
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
  ReadList(json, "holdersOfRemovedDevices", report.removed);
  ReadList(json, "unavailableMetrics", report.unavailable_metrics);
  ReadList(json, "conditions", report.conditions);
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
               {"holdersOfRemovedDevices", ListOf(report.removed)},
               {"allocators", ListOf(report.allocators)},
               {"doors", ListOf(report.allocators)},
               {"servers", ListOf(report.servers)},
               {"cdi", ToJsonValue(report.cdi)},
               {"configuration", ToJsonValue(report.configuration)},
               {"validation", ListOf(report.validation)},
               {"conditions", ListOf(report.conditions)},
               {"enforcement", report.enforcement}};
  if (!report.layout.name.empty()) json["layout"] = ToJsonValue(report.layout);
  if (!report.unavailable_metrics.empty())
    json["unavailableMetrics"] = ListOf(report.unavailable_metrics);
  if (!report.next_kernel.empty()) json["nextKernel"] = report.next_kernel;
  return base::JsonText(json);
}

std::string HoldersToJson(const Report& report) {
  std::vector<HolderReport> holders, graphics;
  for (const DeviceReport& device : report.devices) {
    holders.insert(holders.end(), device.holders.begin(), device.holders.end());
    graphics.insert(graphics.end(), device.graphics.begin(), device.graphics.end());
  }
  holders.insert(holders.end(), report.removed.begin(), report.removed.end());
  return base::JsonText(
      Json{{"holders", ListOf(holders)}, {"graphicsProcesses", ListOf(graphics)}});
}

std::string ValidationToJson(const Report& report) {
  return base::JsonText(Json{{"node", report.node},
                             {"ready", AllPassed(report.validation)},
                             {"validation", ListOf(report.validation)}});
}

base::Result<Report> ParseReport(std::string_view json) {
  try {
    return ParseWhole(Json::parse(json));
  } catch (const nlohmann::json::exception& exception) {
    return base::Error(base::Code::kDataLoss,
                       std::string("this is not a report of an agent: ") + exception.what());
  }
}

bool AllPassed(const std::vector<ValidationStep>& steps) {
  bool any = false;
  for (const ValidationStep& step : steps) {
    if (step.state != "passed" && step.state != "skipped") return false;
    any |= step.state == "passed";
  }
  return any;
}

std::string NumberOf(const DeviceReport& device) {
  if (!device.number.empty()) return device.number;
  return device.index < 0 ? "" : std::to_string(device.index);
}

bool IsShared(const DeviceReport& device) {
  return !device.sharing.empty() && device.sharing != "none";
}

const AllocatorReport* AllocatorIn(const Report& report, std::string_view name) {
  const auto found = std::ranges::find(report.allocators, name, &AllocatorReport::name);
  return found == report.allocators.end() ? nullptr : &*found;
}

const AllocatorReport* AdvertisingAllocator(const Report& report) {
  const auto found = std::ranges::find_if(report.allocators, [](const AllocatorReport& one) {
    return FindAllocator(one.name).advertises;
  });
  return found == report.allocators.end() ? nullptr : &*found;
}

}  // namespace penstock::api
