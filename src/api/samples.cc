// Converts samples to JSON and back. The keys are stable (docs/reference/broker-protocol.md): add
// keys, never rename them.
#include "api/samples.h"

#include <cmath>

#include "api/report_json.h"

namespace penstock::api {
namespace {

using Json = nlohmann::ordered_json;
using internal::ForEach;
using internal::Take;

/// Rounds to four decimal places, which are enough for display, and writes integers without a
/// fraction.
Json ToJsonValue(const std::optional<double>& value) {
  constexpr double kDigits = 1e4, kLargestWhole = 9e15;
  if (!value || !std::isfinite(*value)) return nullptr;
  if (*value == std::floor(*value) && std::abs(*value) < kLargestWhole)
    return static_cast<std::int64_t>(*value);
  return std::round(*value * kDigits) / kDigits;
}

Json IndexJson(int index) { return index < 0 ? Json(nullptr) : Json(index); }

Json ToJsonValue(const SampledDevice& device) {
  Json history = Json::object();
  for (const auto& [name, values] : device.history) {
    Json& list = history[name] = Json::array();
    for (const auto& value : values) list.push_back(ToJsonValue(value));
  }
  return {{"id", device.id},
          {"vendor", device.vendor},
          {"model", device.model},
          {"index", IndexJson(device.index)},
          {"memoryBytes", device.memory_bytes},
          {"health", {{"state", device.health_state}, {"reason", device.health_reason}}},
          {"sharing", device.sharing},
          {"shares", device.shares},
          {"free", device.free},
          {"allocator", device.allocator},
          {"door", device.allocator},
          {"collected", device.collected},
          {"problem", device.problem},
          {"utilization", ToJsonValue(device.utilization)},
          {"memoryUsedBytes", ToJsonValue(device.memory_used)},
          {"temperatureCelsius", ToJsonValue(device.temperature)},
          {"powerWatts", ToJsonValue(device.power)},
          {"powerLimitWatts", ToJsonValue(device.power_limit)},
          {"clockHertz", ToJsonValue(device.clock)},
          {"history", std::move(history)}};
}

Json ToJsonValue(const SampledProcess& process) {
  return {{"device", process.device},
          {"index", IndexJson(process.index)},
          {"pid", process.pid == 0 ? Json(nullptr) : Json(process.pid)},
          {"user", process.user},
          {"command", process.command},
          {"kind", process.kind},
          {"lease", process.lease},
          {"pod", process.pod},
          {"namespace", process.namespace_name},
          {"container", process.container},
          {"memoryBytes", process.memory_bytes ? Json(*process.memory_bytes) : Json(nullptr)},
          {"compute", ToJsonValue(process.compute)},
          {"memoryCopy", ToJsonValue(process.memory_copy)},
          {"encoder", ToJsonValue(process.encoder)},
          {"decoder", ToJsonValue(process.decoder)}};
}

template <typename T>
void TakeMaybe(const Json& json, const char* key, std::optional<T>& target) {
  if (const auto found = json.find(key); found != json.end() && !found->is_null())
    target = found->get<T>();
}

SampledDevice ParseDevice(const Json& json) {
  SampledDevice device;
  Take(json, "id", device.id);
  Take(json, "vendor", device.vendor);
  Take(json, "model", device.model);
  Take(json, "index", device.index);
  Take(json, "memoryBytes", device.memory_bytes);
  if (const auto health = json.find("health"); health != json.end()) {
    Take(*health, "state", device.health_state);
    Take(*health, "reason", device.health_reason);
  }
  Take(json, "sharing", device.sharing);
  Take(json, "shares", device.shares);
  Take(json, "free", device.free);
  internal::TakeAllocator(json, device.allocator);
  Take(json, "collected", device.collected);
  Take(json, "problem", device.problem);
  TakeMaybe(json, "utilization", device.utilization);
  TakeMaybe(json, "memoryUsedBytes", device.memory_used);
  TakeMaybe(json, "temperatureCelsius", device.temperature);
  TakeMaybe(json, "powerWatts", device.power);
  TakeMaybe(json, "powerLimitWatts", device.power_limit);
  TakeMaybe(json, "clockHertz", device.clock);
  const auto history = json.find("history");
  if (history == json.end() || history->is_null()) return device;
  for (const auto& [name, values] : history->get_ref<const Json::object_t&>())
    for (const Json& value : values.get_ref<const Json::array_t&>())
      device.history[name].push_back(value.is_null() ? std::nullopt
                                                     : std::optional(value.get<double>()));
  return device;
}

SampledProcess ParseProcess(const Json& json) {
  SampledProcess process;
  Take(json, "device", process.device);
  Take(json, "index", process.index);
  Take(json, "pid", process.pid);
  Take(json, "user", process.user);
  Take(json, "command", process.command);
  Take(json, "kind", process.kind);
  Take(json, "lease", process.lease);
  Take(json, "pod", process.pod);
  Take(json, "namespace", process.namespace_name);
  Take(json, "container", process.container);
  TakeMaybe(json, "memoryBytes", process.memory_bytes);
  TakeMaybe(json, "compute", process.compute);
  TakeMaybe(json, "memoryCopy", process.memory_copy);
  TakeMaybe(json, "encoder", process.encoder);
  TakeMaybe(json, "decoder", process.decoder);
  return process;
}

}  // namespace

std::string ToJson(const Samples& samples) {
  Json devices = Json::array(), processes = Json::array();
  for (const SampledDevice& device : samples.devices) devices.push_back(ToJsonValue(device));
  for (const SampledProcess& process : samples.processes) processes.push_back(ToJsonValue(process));
  const Json json = {{"node", samples.node},
                     {"time", samples.time},
                     {"intervalSeconds", ToJsonValue(samples.interval_seconds)},
                     {"devices", std::move(devices)},
                     {"processes", std::move(processes)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

base::Result<Samples> ParseSamples(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    Samples samples;
    Take(json, "node", samples.node);
    Take(json, "time", samples.time);
    Take(json, "intervalSeconds", samples.interval_seconds);
    ForEach(json, "devices",
            [&](const Json& device) { samples.devices.push_back(ParseDevice(device)); });
    ForEach(json, "processes",
            [&](const Json& process) { samples.processes.push_back(ParseProcess(process)); });
    return samples;
  } catch (const nlohmann::json::exception& exception) {
    return base::Error(base::Code::kDataLoss,
                       std::string("these are not samples of an agent: ") + exception.what());
  }
}

}  // namespace penstock::api
