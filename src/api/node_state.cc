// Converts the report to an object of the API server and back; command lines and process ids stay
// on the node. The keys are stable (docs/reference/node-state.md, the CRD): add keys, never rename
// them.
#include "api/node_state.h"

#include <algorithm>
#include <map>
#include <set>

#include "api/report_json.h"
#include "base/core/json_text.h"
#include "base/core/printable.h"
#include "base/core/strings.h"

namespace penstock::api {

namespace {

using StateJson = nlohmann::json;
using internal::ForEach;
using internal::Take;

constexpr std::size_t kLongestField = 4096;  // etcd accepts 1.5 MiB for a whole object

std::string CutField(const std::string& text) { return base::Shortened(text, kLongestField, "…"); }

/// Removes fractions of seconds, which Kubernetes' times do not have: "2026-11-21T03:42:00Z".
std::string WholeSeconds(const std::string& time) {
  const auto point = time.find('.');
  return point == std::string::npos ? time : time.substr(0, point) + "Z";
}

/// Writes fields as the API server's object has them: without unknown values, whose format it would
/// refuse, and with texts of limited length.
struct StateWriter {
  StateJson& json;

  template <typename T>
  void operator()(const char* key, const T& value) const {
    json[key] = value;
  }
  template <typename T>
  void operator()(const char* key, const std::optional<T>& value) const {
    if (value) json[key] = *value;
  }
  template <typename T>
  void Own(const char*, const T&) const {}
  void Index(const char* key, int index) const {
    if (index >= 0) json[key] = index;
  }
  void Text(const char* key, const std::string& text) const { json[key] = CutField(text); }
  template <typename T>
  void IfAny(const char* key, const T& value) const {
    if (value != T{}) json[key] = value;
  }
  void TextIfAny(const char* key, const std::string& text) const {
    if (!text.empty()) Text(key, text);
  }
  void Time(const char* key, const std::string& time) const {
    if (!time.empty()) json[key] = WholeSeconds(time);
  }
  void Allocator(const std::string& name) const { json["allocator"] = json["door"] = name; }
  template <typename Nest>
  void Nested(const char* key, Nest nest) const {
    nest(StateWriter{json[key]});
  }
};

StateJson HoldersOf(const DeviceReport& device) {
  std::map<std::string, int> counts{{"handed", 0}, {"held", 0}, {"outside", 0}};
  for (const HolderReport& holder : device.holders) ++counts[holder.state];
  return {{"handed", counts["handed"]}, {"held", counts["held"]}, {"outside", counts["outside"]}};
}

bool IsHeld(const DeviceReport& device) {
  return std::any_of(device.holders.begin(), device.holders.end(),
                     [](const HolderReport& holder) { return holder.state != "outside"; });
}

/// None where no allocator offers the device.
int SlotsOf(const DeviceReport& device) { return device.resource.empty() ? 0 : device.shares; }

template <typename T>
StateJson StateOf(const T& item) {
  StateJson object;
  VisitFields(StateWriter{object}, item);
  return object;
}

template <>
StateJson StateOf(const DeviceReport& device) {
  StateJson object;
  VisitFields(StateWriter{object}, device);
  object["slots"] = SlotsOf(device);
  object["holders"] = HoldersOf(device);
  return object;
}

template <>
StateJson StateOf(const ConfigurationReport& configuration) {
  StateJson object;
  VisitFields(StateWriter{object}, configuration);
  if (!configuration.remarks.empty()) object["remarks"] = configuration.remarks;
  return object;
}

template <>
StateJson StateOf(const ConditionReport& condition) {
  StateJson object;
  const StateWriter write{object};
  write("type", condition.type);
  write("status", condition.status ? "True" : "False");
  write("reason", condition.reason);
  write.Text("message", condition.message);
  write.Time("lastTransitionTime", condition.since);
  return object;
}

template <typename T>
StateJson StatesOf(const std::vector<T>& items) {
  StateJson list = StateJson::array();
  for (const T& item : items) list.push_back(StateOf(item));
  return list;
}

/// "8 NVIDIA A100-SXM4-40GB, 1 Tesla T4".
std::string ModelsOf(const Report& report) {
  std::map<std::string, int> counts;
  for (const DeviceReport& device : report.devices) ++counts[device.model];
  std::vector<std::string> models;
  for (const auto& [model, count] : counts) models.push_back(std::to_string(count) + " " + model);
  return base::Join(models, ", ");
}

/// "mps, time-slicing"; "none" where every device is allocated whole.
std::string SharingOf(const Report& report) {
  std::set<std::string> kinds;
  for (const DeviceReport& device : report.devices)
    if (IsShared(device)) kinds.insert(device.sharing);
  return kinds.empty() ? "none"
                       : base::Join(std::vector<std::string>(kinds.begin(), kinds.end()), ", ");
}

std::string DriversOf(const Report& report) {
  std::vector<std::string> drivers;
  for (const VendorReport& vendor : report.vendors)
    if (!vendor.driver.empty()) drivers.push_back(vendor.driver);
  return drivers.empty() ? "none" : base::Join(drivers, ", ");
}

/// Shortens an origin to the width of a column: the key of a ConfigMap, the name of a file.
std::string ShortOrigin(const std::string& origin) {
  if (const auto key = origin.find(", key "); key != std::string::npos) {
    const std::string name = origin.substr(key + 6);
    return name.substr(0, name.find(' '));
  }
  if (origin.starts_with("file ")) return origin.substr(origin.find_last_of("/ ") + 1);
  return origin;
}

StateJson SummaryOf(const Report& report) {
  const auto healthy =
      std::count_if(report.devices.begin(), report.devices.end(),
                    [](const DeviceReport& device) { return device.health_state == "healthy"; });
  const AllocatorReport* allocator = AdvertisingAllocator(report);
  int slots = 0, free = 0;
  for (const DeviceReport& device : report.devices) {
    slots += SlotsOf(device);
    free += device.free;
  }
  const std::string kubelet = allocator == nullptr ? "" : allocator->state;
  return {
      {"driver", DriversOf(report)},
      {"models", ModelsOf(report)},
      {"devices", report.devices.size()},
      {"healthy", healthy},
      {"held", std::count_if(report.devices.begin(), report.devices.end(), IsHeld)},
      {"slots", slots},
      {"free", free},
      {"sharing", SharingOf(report)},
      {"kubelet", kubelet},
      {"door", kubelet},  // "door" is 0.1.0's key
      {"configuration", ShortOrigin(report.configuration.origin) +
                            (report.configuration.problem.empty() ? "" : " (newer one refused)")}};
}

/// Adds as many unnamed holders as were counted. The limit is more than any device has: a larger
/// count is not trusted.
void AddHolders(DeviceReport& device, const StateJson& counts, const char* state) {
  constexpr int kMax = 4096;
  int count = 0;
  Take(counts, state, count);
  for (int i = 0; i < std::min(count, kMax); ++i) {
    HolderReport holder;
    holder.device = device.id;
    holder.index = device.index;
    holder.state = state;
    if (holder.state == "outside") holder.kind = "outside";
    device.holders.push_back(std::move(holder));
  }
}

DeviceReport ParseDeviceState(const StateJson& json) {
  DeviceReport device;
  VisitFields(internal::FieldReader<StateJson>{json}, device);
  Take(json, "slots", device.shares);
  if (const auto holders = json.find("holders"); holders != json.end())
    for (const char* state : {"handed", "held", "outside"}) AddHolders(device, *holders, state);
  return device;
}

ConditionReport ParseCondition(const StateJson& json) {
  ConditionReport condition;
  Take(json, "type", condition.type);
  Take(json, "reason", condition.reason);
  Take(json, "message", condition.message);
  std::string status;
  Take(json, "status", status);
  condition.status = status == "True";
  Take(json, "lastTransitionTime", condition.since);
  return condition;
}

Report ParseStatus(const StateJson& object) {
  Report report;
  Take(object.at("metadata"), "name", report.node);
  const auto status = object.find("status");
  if (status == object.end() || status->is_null()) return report;
  internal::ReadCommon(*status, report);
  ForEach(*status, "devices",
          [&](const StateJson& device) { report.devices.push_back(ParseDeviceState(device)); });
  ForEach(*status, "conditions", [&](const StateJson& condition) {
    report.conditions.push_back(ParseCondition(condition));
  });
  return report;
}

}  // namespace

StateJson NodeStateOf(const Report& report) {
  StateJson object = {
      {"apiVersion", std::string(kNodeStateGroup) + "/" + std::string(kNodeStateVersion)},
      {"kind", "NodeState"},
      {"metadata", {{"name", report.node}}},
      {"status",
       {{"version", report.version},
        {"summary", SummaryOf(report)},
        {"vendors", StatesOf(report.vendors)},
        {"devices", StatesOf(report.devices)},
        {"allocators", StatesOf(report.allocators)},
        {"doors", StatesOf(report.allocators)},
        {"servers", StatesOf(report.servers)},
        {"enforcement", report.enforcement},
        {"configuration", StateOf(report.configuration)},
        {"validation", StatesOf(report.validation)},
        {"conditions", StatesOf(report.conditions)}}}};
  if (!report.layout.name.empty()) object["status"]["layout"] = StateOf(report.layout);
  if (!report.next_kernel.empty()) object["status"]["nextKernel"] = CutField(report.next_kernel);
  // Text from a driver or the kernel may be invalid UTF-8, which JSON does not allow.
  return base::ParseJson<StateJson>(base::JsonText(object));
}

namespace {

/// Adds what the agent's own form has besides, except for keys whose value has another form there.
void AddOwn(const StateJson& own, StateJson& object) {
  for (const auto& [key, value] : own.items())
    if (key != "holders" && key != "graphicsProcesses" && key != "shares" && !value.is_null() &&
        !object.contains(key))
      object[key] = value;
}

}  // namespace

std::string NodeDocument(const Report& report) {
  StateJson document = base::ParseJson<StateJson>(ToJson(report));
  StateJson state = NodeStateOf(report);
  StateJson& status = state["status"];
  for (const char* list : {"devices", "allocators", "doors", "servers"})
    for (std::size_t i = 0; i < status[list].size(); ++i)
      AddOwn(document[list][i], status[list][i]);
  for (const char* key : {"generation", "agentPid", "cdi", "unavailableMetrics"})
    if (document.contains(key)) status[key] = document[key];
  status.update(base::ParseJson<StateJson>(HoldersToJson(report)));
  document.update(state);
  return base::JsonText(document);
}

base::Result<Report> ReportOf(const StateJson& node_state) {
  try {
    if (const std::string kind = node_state.value("kind", "NodeState"); kind != "NodeState")
      return base::Error(base::Code::kDataLoss, "this is a " + kind + ", not a NodeState");
    return ParseStatus(node_state);
  } catch (const nlohmann::json::exception& exception) {
    return base::Error(base::Code::kDataLoss,
                       std::string("this is not a NodeState: ") + exception.what());
  }
}

}  // namespace penstock::api
