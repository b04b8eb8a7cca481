// What the two JSON forms of a report have in common when they are read: the agent's own (report.cc) and the node's object (node_state.cc).
// Internal to this room, because it needs the JSON library's header. All throw nlohmann::json::exception for a value of the wrong kind.
#pragma once

#include <nlohmann/json.hpp>

#include "api/report.h"

namespace penstock::api::internal {

/// The value of a key, or the target as it is where the key is absent or null: an older or newer agent may have said less.
template <typename Json, typename T>
void Take(const Json& object, const char* key, T& target) {
  (void)object.template get_ref<const typename Json::object_t&>();  // throws where this is no object
  const auto found = object.find(key);
  if (found != object.end() && !found->is_null()) found->get_to(target);
}

/// Calls with each item of the list at a key, which may be absent or null. Iterating over anything but a list would pass over it in
/// silence.
template <typename Json, typename Function>
void ForEach(const Json& object, const char* key, Function function) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return;
  for (const Json& item : found->template get_ref<const typename Json::array_t&>()) function(item);
}

/// Without its holders, which the two forms tell differently.
template <typename Json>
DeviceReport ReadDevice(const Json& json) {
  DeviceReport device;
  Take(json, "id", device.id);
  Take(json, "vendor", device.vendor);
  Take(json, "model", device.model);
  Take(json, "index", device.index);
  Take(json, "pci", device.pci);
  if (const auto numa = json.find("numa"); numa != json.end() && !numa->is_null()) device.numa = numa->template get<int>();
  Take(json, "memoryBytes", device.memory_bytes);
  if (const auto health = json.find("health"); health != json.end()) {
    Take(*health, "state", device.health_state);
    Take(*health, "reason", device.health_reason);
    Take(*health, "since", device.health_since);
  }
  Take(json, "door", device.door);
  Take(json, "withheld", device.withheld);
  Take(json, "serial", device.serial);
  Take(json, "resource", device.resource);
  Take(json, "sharing", device.sharing);
  Take(json, "free", device.free);
  Take(json, "isolation", device.isolation);
  Take(json, "shareMemoryBytes", device.share_memory_bytes);
  Take(json, "shareComputePercent", device.share_compute_percent);
  Take(json, "probationUntil", device.probation_until);
  Take(json, "relapses", device.relapses);
  Take(json, "replaced", device.replaced);
  Take(json, "telemetryProblem", device.telemetry_problem);
  return device;
}

template <typename Json>
DoorReport ReadDoor(const Json& json) {
  DoorReport door;
  Take(json, "name", door.name);
  Take(json, "state", door.state);
  Take(json, "reason", door.reason);
  Take(json, "resources", door.resources);
  Take(json, "enforcement", door.enforcement);
  Take(json, "deviceList", door.device_list);
  Take(json, "deviceListReason", door.device_list_reason);
  Take(json, "closedCgroups", door.closed_cgroups);
  Take(json, "closedCgroupsProblem", door.closed_problem);
  return door;
}

template <typename Json>
ServerReport ReadServer(const Json& json) {
  ServerReport server;
  Take(json, "set", server.set);
  Take(json, "kind", server.kind);
  Take(json, "state", server.state);
  Take(json, "reason", server.reason);
  Take(json, "clients", server.clients);
  Take(json, "devices", server.devices);
  return server;
}

template <typename Json>
VendorReport ReadVendor(const Json& json) {
  VendorReport vendor;
  Take(json, "vendor", vendor.vendor);
  Take(json, "driver", vendor.driver);
  Take(json, "runtime", vendor.runtime);
  Take(json, "reason", vendor.reason);
  return vendor;
}

template <typename Json>
CdiReport ReadCdi(const Json& json) {
  CdiReport cdi;
  Take(json, "folder", cdi.folder);
  Take(json, "kinds", cdi.kinds);
  Take(json, "problems", cdi.problems);
  Take(json, "remarks", cdi.remarks);
  return cdi;
}

template <typename Json>
ConfigurationReport ReadConfiguration(const Json& json) {
  ConfigurationReport configuration;
  Take(json, "origin", configuration.origin);
  Take(json, "since", configuration.since);
  Take(json, "problem", configuration.problem);
  Take(json, "problemOrigin", configuration.problem_origin);
  Take(json, "notYet", configuration.not_yet);
  Take(json, "remarks", configuration.remarks);
  Take(json, "waiting", configuration.waiting);
  return configuration;
}

/// Type, reason and message; the status and its time have other forms in the two.
template <typename Json>
ConditionReport ReadCondition(const Json& json) {
  ConditionReport condition;
  Take(json, "type", condition.type);
  Take(json, "reason", condition.reason);
  Take(json, "message", condition.message);
  return condition;
}

/// What both have under the same keys.
template <typename Json>
void ReadCommon(const Json& json, Report& report) {
  Take(json, "version", report.version);
  ForEach(json, "vendors", [&](const Json& vendor) { report.vendors.push_back(ReadVendor(vendor)); });
  ForEach(json, "doors", [&](const Json& door) { report.doors.push_back(ReadDoor(door)); });
  ForEach(json, "servers", [&](const Json& server) { report.servers.push_back(ReadServer(server)); });
  if (const auto found = json.find("cdi"); found != json.end()) report.cdi = ReadCdi(*found);
  if (const auto found = json.find("configuration"); found != json.end()) report.configuration = ReadConfiguration(*found);
  Take(json, "enforcement", report.enforcement);
}

}  // namespace penstock::api::internal
