// The report as JSON and back. Its keys are a promise (docs/reference/report.md): add, never rename.
#include "api/report.h"

#include <nlohmann/json.hpp>

namespace penstock::api {

namespace {

using Json = nlohmann::ordered_json;

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
          {"since", holder.since}};
}

Json HoldersOf(const DeviceReport& device) {
  Json holders = Json::array();
  for (const HolderReport& holder : device.holders) holders.push_back(ToJsonValue(holder));
  return holders;
}

Json ToJsonValue(const DeviceReport& device) {
  return {{"id", device.id},
          {"vendor", device.vendor},
          {"model", device.model},
          {"index", IndexJson(device.index)},
          {"pci", device.pci},
          {"numa", device.numa ? Json(*device.numa) : Json(nullptr)},
          {"memoryBytes", device.memory_bytes},
          {"health", {{"state", device.health_state}, {"reason", device.health_reason}, {"since", device.health_since}}},
          {"door", device.door},
          {"withheld", device.withheld},
          {"holders", HoldersOf(device)}};
}

Json ToJsonValue(const DoorReport& door) {
  return {{"name", door.name},
          {"state", door.state},
          {"reason", door.reason},
          {"resources", door.resources},
          {"enforcement", door.enforcement}};
}

Json ToJsonValue(const VendorReport& vendor) {
  return {{"vendor", vendor.vendor}, {"driver", vendor.driver}, {"runtime", vendor.runtime}, {"reason", vendor.reason}};
}

Json ToJsonValue(const ConfigurationReport& configuration) {
  return {{"origin", configuration.origin},
          {"since", configuration.since},
          {"problem", configuration.problem},
          {"problemOrigin", configuration.problem_origin},
          {"notYet", configuration.not_yet}};
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

/// A command line need not be UTF-8: what is not becomes U+FFFD.
std::string Dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// The value of a key, or the target as it is where the key is absent or null: an older or newer agent may have said less.
template <typename T>
void Take(const Json& object, const char* key, T& target) {
  (void)object.get_ref<const Json::object_t&>();  // throws where this is no object
  const auto found = object.find(key);
  if (found != object.end() && !found->is_null()) found->get_to(target);
}

/// Iterating over anything but a list would pass over it in silence.
const Json::array_t& Items(const Json& list) { return list.get_ref<const Json::array_t&>(); }

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
  return holder;
}

DeviceReport ParseDevice(const Json& json) {
  DeviceReport device;
  Take(json, "id", device.id);
  Take(json, "vendor", device.vendor);
  Take(json, "model", device.model);
  Take(json, "index", device.index);
  Take(json, "pci", device.pci);
  if (const auto numa = json.find("numa"); numa != json.end() && !numa->is_null()) device.numa = numa->get<int>();
  Take(json, "memoryBytes", device.memory_bytes);
  if (const auto health = json.find("health"); health != json.end()) {
    Take(*health, "state", device.health_state);
    Take(*health, "reason", device.health_reason);
    Take(*health, "since", device.health_since);
  }
  Take(json, "door", device.door);
  Take(json, "withheld", device.withheld);
  if (const auto holders = json.find("holders"); holders != json.end())
    for (const Json& holder : Items(*holders)) device.holders.push_back(ParseHolder(holder));
  return device;
}

DoorReport ParseDoor(const Json& json) {
  DoorReport door;
  Take(json, "name", door.name);
  Take(json, "state", door.state);
  Take(json, "reason", door.reason);
  Take(json, "resources", door.resources);
  Take(json, "enforcement", door.enforcement);
  return door;
}

ConfigurationReport ParseConfiguration(const Json& json) {
  ConfigurationReport configuration;
  Take(json, "origin", configuration.origin);
  Take(json, "since", configuration.since);
  Take(json, "problem", configuration.problem);
  Take(json, "problemOrigin", configuration.problem_origin);
  Take(json, "notYet", configuration.not_yet);
  return configuration;
}

ConditionReport ParseCondition(const Json& json) {
  ConditionReport condition;
  Take(json, "type", condition.type);
  Take(json, "status", condition.status);
  Take(json, "reason", condition.reason);
  Take(json, "message", condition.message);
  Take(json, "since", condition.since);
  return condition;
}

VendorReport ParseVendor(const Json& json) {
  VendorReport vendor;
  Take(json, "vendor", vendor.vendor);
  Take(json, "driver", vendor.driver);
  Take(json, "runtime", vendor.runtime);
  Take(json, "reason", vendor.reason);
  return vendor;
}

Report ParseWhole(const Json& json) {
  Report report;
  json.at("generation").get_to(report.generation);
  Take(json, "node", report.node);
  Take(json, "version", report.version);
  Take(json, "agentPid", report.agent_pid);
  if (const auto vendors = json.find("vendors"); vendors != json.end())
    for (const Json& vendor : Items(*vendors)) report.vendors.push_back(ParseVendor(vendor));
  for (const Json& device : Items(json.at("devices"))) report.devices.push_back(ParseDevice(device));
  for (const Json& door : Items(json.at("doors"))) report.doors.push_back(ParseDoor(door));
  if (const auto found = json.find("configuration"); found != json.end()) report.configuration = ParseConfiguration(*found);
  if (const auto conditions = json.find("conditions"); conditions != json.end())
    for (const Json& condition : Items(*conditions)) report.conditions.push_back(ParseCondition(condition));
  Take(json, "enforcement", report.enforcement);
  return report;
}

}  // namespace

std::string ToJson(const Report& report) {
  return Dump({{"generation", report.generation},
               {"node", report.node},
               {"version", report.version},
               {"agentPid", report.agent_pid},
               {"vendors", ListOf(report.vendors)},
               {"devices", ListOf(report.devices)},
               {"doors", ListOf(report.doors)},
               {"configuration", ToJsonValue(report.configuration)},
               {"conditions", ListOf(report.conditions)},
               {"enforcement", report.enforcement}});
}

std::string HoldersToJson(const Report& report) {
  Json holders = Json::array();
  for (const DeviceReport& device : report.devices)
    for (const HolderReport& holder : device.holders) holders.push_back(ToJsonValue(holder));
  return Dump({{"holders", std::move(holders)}});
}

base::Result<Report> ParseReport(std::string_view json) {
  try {
    return ParseWhole(Json::parse(json));
  } catch (const nlohmann::json::exception& exception) {
    return base::Error(base::Code::kDataLoss, std::string("this is no report of an agent: ") + exception.what());
  }
}

}  // namespace penstock::api
