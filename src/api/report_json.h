// The fields of the parts of a report and of samples, each once, for the JSON forms that share
// them: the agent's own (report.cc, samples.cc) and the node's object (node_state.cc). Internal to
// this folder, because it needs the JSON library's header. Reading throws nlohmann::json::exception
// for a value of the wrong type.
#pragma once

#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "api/report.h"
#include "base/core/fields.h"

namespace penstock::api {

namespace internal {

/// Reads the value of a key. Leaves the target unchanged if the key is absent or null: an older or
/// newer agent may not write it.
template <typename Json, typename T>
void Take(const Json& object, const char* key, T& target) {
  (void)
      object.template get_ref<const typename Json::object_t&>();  // throws if this is not an object
  const auto found = object.find(key);
  if (found != object.end() && !found->is_null()) found->get_to(target);
}

template <typename Json, typename T>
void Take(const Json& object, const char* key, std::optional<T>& target) {
  if (const auto found = object.find(key); found != object.end() && !found->is_null())
    target = found->template get<T>();
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

/// The key of the list of allocators.
template <typename Json>
const char* AllocatorsKey(const Json& object) {
  return object.contains("allocators") ? "allocators" : "doors";
}

/// Reads fields from an object.
template <typename Json>
struct FieldReader {
  const Json& json;

  template <typename T>
  void operator()(const char* key, T& target) const {
    Take(json, key, target);
  }
  template <typename T>
  void Own(const char* key, T& target) const {
    Take(json, key, target);
  }
  void Index(const char* key, int& target) const { Take(json, key, target); }
  void Text(const char* key, std::string& target) const { Take(json, key, target); }
  void TextIfAny(const char* key, std::string& target) const { Take(json, key, target); }
  template <typename T>
  void IfAny(const char* key, T& target) const {
    Take(json, key, target);
  }
  void Time(const char* key, std::string& target) const { Take(json, key, target); }
  void Allocator(std::string& target) const {
    Take(json, "door", target);
    Take(json, "allocator", target);
  }
  template <typename Fields>
  void Nested(const char* key, Fields fields) const {
    if (const auto found = json.find(key); found != json.end()) fields(FieldReader<Json>{*found});
  }
};

/// Four decimal places, which are enough for display; integers without a fraction.
template <typename Json>
Json Rounded(const std::optional<double>& value) {
  constexpr double kDigits = 1e4, kLargestWhole = 9e15;
  if (!value || !std::isfinite(*value)) return nullptr;
  if (*value == std::floor(*value) && std::abs(*value) < kLargestWhole)
    return static_cast<std::int64_t>(*value);
  return std::round(*value * kDigits) / kDigits;
}

/// Writes fields in the agent's own form: every key, null for what is unknown.
template <typename Json>
struct FieldWriter {
  Json& json;

  template <typename T>
  void operator()(const char* key, const T& value) const {
    json[key] = value;
  }
  template <typename T>
  void operator()(const char* key, const std::optional<T>& value) const {
    json[key] = value ? Json(*value) : Json(nullptr);
  }
  void operator()(const char* key, const std::optional<double>& value) const {
    json[key] = Rounded<Json>(value);
  }
  /// What only the agent's own form has.
  template <typename T>
  void Own(const char* key, const T& value) const {
    json[key] = value;
  }
  void Index(const char* key, int index) const {
    json[key] = index < 0 ? Json(nullptr) : Json(index);
  }
  void Text(const char* key, const std::string& text) const { json[key] = text; }
  void TextIfAny(const char* key, const std::string& text) const { json[key] = text; }
  /// What few devices have: left out where it is empty or 0.
  template <typename T>
  void IfAny(const char* key, const T& value) const {
    if (value != T{}) json[key] = value;
  }
  void Time(const char* key, const std::string& time) const { json[key] = time; }
  void Allocator(const std::string& name) const { json["allocator"] = json["door"] = name; }
  template <typename Fields>
  void Nested(const char* key, Fields fields) const {
    fields(FieldWriter<Json>{json[key]});
  }
};

}  // namespace internal

/// Without the holders, which the two forms write differently.
template <typename Visit, base::Of<DeviceReport> Device>
void VisitFields(const Visit& visit, Device& device) {
  visit("id", device.id);
  visit("vendor", device.vendor);
  visit("model", device.model);
  visit.Index("index", device.index);
  visit.IfAny("number", device.number);
  visit.IfAny("parent", device.parent);
  visit.IfAny("profile", device.profile);
  visit.IfAny("parts", device.parts);
  visit.IfAny("onDemand", device.on_demand);
  visit.Own("kind", device.kind);
  visit("pci", device.pci);
  visit("numa", device.numa);
  visit("memoryBytes", device.memory_bytes);
  visit.Nested("health", [&device](const auto& health) {
    health("state", device.health_state);
    health.Text("reason", device.health_reason);
    health.Time("since", device.health_since);
  });
  visit.Allocator(device.allocator);
  visit.Text("withheld", device.withheld);
  visit("serial", device.serial);
  visit("resource", device.resource);
  visit("sharing", device.sharing);
  visit.Own("shares", device.shares);
  visit("free", device.free);
  visit("isolation", device.isolation);
  visit("shareMemoryBytes", device.share_memory_bytes);
  visit("shareComputePercent", device.share_compute_percent);
  visit.Time("probationUntil", device.probation_until);
  visit("relapses", device.relapses);
  visit.Own("replaced", device.replaced);
  visit.TextIfAny("warning", device.warning);
  visit.TextIfAny("telemetryProblem", device.telemetry_problem);
}

template <typename Visit, base::Of<AllocatorReport> Allocator>
void VisitFields(const Visit& visit, Allocator& allocator) {
  visit("name", allocator.name);
  visit("state", allocator.state);
  visit.Text("reason", allocator.reason);
  visit("resources", allocator.resources);
  visit("enforcement", allocator.enforcement);
  visit("deviceList", allocator.device_list);
  visit.Text("deviceListReason", allocator.device_list_reason);
  visit.Own("closedCgroups", allocator.closed_cgroups);
  visit.Own("closedCgroupsProblem", allocator.closed_problem);
}

/// The number of clients changes with every process, so it stays on the node.
template <typename Visit, base::Of<ServerReport> Server>
void VisitFields(const Visit& visit, Server& server) {
  visit("set", server.set);
  visit("kind", server.kind);
  visit("state", server.state);
  visit.Text("reason", server.reason);
  visit.Own("clients", server.clients);
  visit("devices", server.devices);
}

template <typename Visit, base::Of<VendorReport> Vendor>
void VisitFields(const Visit& visit, Vendor& vendor) {
  visit("vendor", vendor.vendor);
  visit("driver", vendor.driver);
  visit("runtime", vendor.runtime);
  visit.Text("reason", vendor.reason);
  visit.TextIfAny("driverSource", vendor.driver_source);
  visit.TextIfAny("driverRoot", vendor.driver_root);
  visit.Time("driverSince", vendor.driver_since);
}

template <typename Visit, base::Of<CdiReport> Cdi>
void VisitFields(const Visit& visit, Cdi& cdi) {
  visit("folder", cdi.folder);
  visit("kinds", cdi.kinds);
  visit("problems", cdi.problems);
  visit("remarks", cdi.remarks);
}

/// Without what is left out where it is empty.
template <typename Visit, base::Of<ConfigurationReport> Configuration>
void VisitFields(const Visit& visit, Configuration& configuration) {
  visit("origin", configuration.origin);
  visit.Time("since", configuration.since);
  visit.Text("problem", configuration.problem);
  visit("problemOrigin", configuration.problem_origin);
  visit("notYet", configuration.not_yet);
}

template <typename Visit, base::Of<LayoutReport> Layout>
void VisitFields(const Visit& visit, Layout& layout) {
  visit("name", layout.name);
  visit("source", layout.source);
  visit("state", layout.state);
  visit.Text("reason", layout.reason);
}

template <typename Visit, base::Of<ValidationStep> Step>
void VisitFields(const Visit& visit, Step& step) {
  visit("name", step.name);
  visit("state", step.state);
  visit.Text("reason", step.reason);
  visit.TextIfAny("remedy", step.remedy);
  visit.Time("since", step.since);
}

namespace internal {

/// Reads the items of a list.
template <typename Json, typename T>
void ReadList(const Json& json, const char* key, std::vector<T>& items) {
  ForEach(json, key, [&items](const Json& item) {
    VisitFields(FieldReader<Json>{item}, items.emplace_back());
  });
}

/// The parts that both forms have under the same keys.
template <typename Json>
void ReadCommon(const Json& json, Report& report) {
  Take(json, "version", report.version);
  ReadList(json, "vendors", report.vendors);
  ReadList(json, AllocatorsKey(json), report.allocators);
  ReadList(json, "servers", report.servers);
  const FieldReader<Json> reader{json};
  reader.Nested("cdi", [&](const auto& cdi) { VisitFields(cdi, report.cdi); });
  reader.Nested("configuration", [&](const auto& configuration) {
    VisitFields(configuration, report.configuration);
    configuration("remarks", report.configuration.remarks);
    configuration("waiting", report.configuration.waiting);
  });
  reader.Nested("layout", [&](const auto& layout) { VisitFields(layout, report.layout); });
  ReadList(json, "validation", report.validation);
  Take(json, "enforcement", report.enforcement);
  Take(json, "nextKernel", report.next_kernel);
}

}  // namespace internal

}  // namespace penstock::api
