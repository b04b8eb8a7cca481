// Reads the parts that the two JSON forms of a report share: the agent's own (report.cc) and the
// node's object (node_state.cc). Internal to this folder, because it needs the JSON library's
// header. All functions throw nlohmann::json::exception for a value of the wrong type.
#pragma once

#include <nlohmann/json.hpp>

#include "api/report.h"

namespace penstock::api::internal {

/// Reads the value of a key. Leaves the target unchanged if the key is absent or null: an older or
/// newer agent may not write it.
template <typename Json, typename T>
void Take(const Json& object, const char* key, T& target) {
  (void)
      object.template get_ref<const typename Json::object_t&>();  // throws if this is not an object
  const auto found = object.find(key);
  if (found != object.end() && !found->is_null()) found->get_to(target);
}

/// Calls a function for each item of the list at a key, which may be absent or null. Throws for
/// other types, because iterating over them would silently skip them.
template <typename Json, typename Function>
void ForEach(const Json& object, const char* key, Function function) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) return;
  for (const Json& item : found->template get_ref<const typename Json::array_t&>()) function(item);
}

// 0.1.0 has the keys `door` and `doors`. Both names are written, and an older agent writes only the
// old one.

/// Reads the allocator of a device.
template <typename Json>
void TakeAllocator(const Json& object, std::string& target) {
  Take(object, "door", target);
  Take(object, "allocator", target);
}

/// The key of the list of allocators.
template <typename Json>
const char* AllocatorsKey(const Json& object) {
  return object.contains("allocators") ? "allocators" : "doors";
}

/// Without the holders, which the two forms write differently.
template <typename Json>
DeviceReport ReadDevice(const Json& json) {
  DeviceReport device;
  Take(json, "id", device.id);
  Take(json, "vendor", device.vendor);
  Take(json, "model", device.model);
  Take(json, "index", device.index);
  Take(json, "pci", device.pci);
  if (const auto numa = json.find("numa"); numa != json.end() && !numa->is_null())
    device.numa = numa->template get<int>();
  Take(json, "memoryBytes", device.memory_bytes);
  if (const auto health = json.find("health"); health != json.end()) {
    Take(*health, "state", device.health_state);
    Take(*health, "reason", device.health_reason);
    Take(*health, "since", device.health_since);
  }
  TakeAllocator(json, device.allocator);
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
AllocatorReport ReadAllocator(const Json& json) {
  AllocatorReport allocator;
  Take(json, "name", allocator.name);
  Take(json, "state", allocator.state);
  Take(json, "reason", allocator.reason);
  Take(json, "resources", allocator.resources);
  Take(json, "enforcement", allocator.enforcement);
  Take(json, "deviceList", allocator.device_list);
  Take(json, "deviceListReason", allocator.device_list_reason);
  Take(json, "closedCgroups", allocator.closed_cgroups);
  Take(json, "closedCgroupsProblem", allocator.closed_problem);
  return allocator;
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

/// Type, reason and message; the two forms write the status and its time differently.
template <typename Json>
ConditionReport ReadCondition(const Json& json) {
  ConditionReport condition;
  Take(json, "type", condition.type);
  Take(json, "reason", condition.reason);
  Take(json, "message", condition.message);
  return condition;
}

/// The parts that both forms have under the same keys.
template <typename Json>
void ReadCommon(const Json& json, Report& report) {
  Take(json, "version", report.version);
  ForEach(json, "vendors",
          [&](const Json& vendor) { report.vendors.push_back(ReadVendor(vendor)); });
  ForEach(json, AllocatorsKey(json),
          [&](const Json& allocator) { report.allocators.push_back(ReadAllocator(allocator)); });
  ForEach(json, "servers",
          [&](const Json& server) { report.servers.push_back(ReadServer(server)); });
  if (const auto found = json.find("cdi"); found != json.end()) report.cdi = ReadCdi(*found);
  if (const auto found = json.find("configuration"); found != json.end())
    report.configuration = ReadConfiguration(*found);
  Take(json, "enforcement", report.enforcement);
}

}  // namespace penstock::api::internal
