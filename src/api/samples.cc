// Converts samples to JSON and back. The keys are stable (docs/reference/broker-protocol.md): add
// keys, never rename them.
#include "api/samples.h"

#include "api/report_json.h"
#include "base/core/json_text.h"

namespace penstock::api {

// Found by their arguments from templates, so not in the unnamed namespace.

template <typename Visit, base::Of<SampledDevice> Device>
static void VisitFields(const Visit& visit, Device& device) {
  visit("id", device.id);
  visit("vendor", device.vendor);
  visit("model", device.model);
  visit.Index("index", device.index);
  visit.IfAny("number", device.number);
  visit.IfAny("profile", device.profile);
  visit("memoryBytes", device.memory_bytes);
  visit.Nested("health", [&device](const auto& health) {
    health("state", device.health_state);
    health("reason", device.health_reason);
  });
  visit("sharing", device.sharing);
  visit("shares", device.shares);
  visit("free", device.free);
  visit.Allocator(device.allocator);
  visit("collected", device.collected);
  visit("problem", device.problem);
  visit("utilization", device.utilization);
  visit("memoryUsedBytes", device.memory_used);
  visit("temperatureCelsius", device.temperature);
  visit("powerWatts", device.power);
  visit("powerLimitWatts", device.power_limit);
  visit("clockHertz", device.clock);
}

template <typename Visit, base::Of<SampledProcess> Process>
static void VisitFields(const Visit& visit, Process& process) {
  visit("device", process.device);
  visit.Index("index", process.index);
  visit.IfAny("number", process.number);
  visit("pid", process.pid);
  visit("user", process.user);
  visit("command", process.command);
  visit("kind", process.kind);
  visit("lease", process.lease);
  visit("pod", process.pod);
  visit("namespace", process.namespace_name);
  visit("container", process.container);
  visit("memoryBytes", process.memory_bytes);
  visit("compute", process.compute);
  visit("memoryCopy", process.memory_copy);
  visit("encoder", process.encoder);
  visit("decoder", process.decoder);
}

namespace {

using Json = nlohmann::ordered_json;
using internal::FieldReader;
using internal::FieldWriter;
using internal::Take;

Json ToJsonValue(const SampledDevice& device) {
  Json json;
  const FieldWriter<Json> write{json};
  VisitFields(write, device);
  Json& history = json["history"] = Json::object();
  for (const auto& [name, values] : device.history) {
    Json& list = history[name] = Json::array();
    for (const auto& value : values) list.push_back(internal::Rounded<Json>(value));
  }
  return json;
}

Json ToJsonValue(const SampledProcess& process) {
  Json json;
  VisitFields(FieldWriter<Json>{json}, process);
  if (process.pid == 0) json["pid"] = nullptr;
  return json;
}

SampledDevice ParseSampledDevice(const Json& json) {
  SampledDevice device;
  VisitFields(FieldReader<Json>{json}, device);
  const auto history = json.find("history");
  if (history == json.end() || history->is_null()) return device;
  for (const auto& [name, values] : history->get_ref<const Json::object_t&>())
    for (const Json& value : values.get_ref<const Json::array_t&>())
      device.history[name].push_back(value.is_null() ? std::nullopt
                                                     : std::optional(value.get<double>()));
  return device;
}

}  // namespace

std::string ToJson(const Samples& samples) {
  Json devices = Json::array(), processes = Json::array();
  for (const SampledDevice& device : samples.devices) devices.push_back(ToJsonValue(device));
  for (const SampledProcess& process : samples.processes) processes.push_back(ToJsonValue(process));
  const Json json = {{"node", samples.node},
                     {"time", samples.time},
                     {"intervalSeconds", internal::Rounded<Json>(samples.interval_seconds)},
                     {"devices", std::move(devices)},
                     {"processes", std::move(processes)}};
  return base::JsonText(json);
}

base::Result<Samples> ParseSamples(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    Samples samples;
    Take(json, "node", samples.node);
    Take(json, "time", samples.time);
    Take(json, "intervalSeconds", samples.interval_seconds);
    internal::ForEach(json, "devices", [&](const Json& device) {
      samples.devices.push_back(ParseSampledDevice(device));
    });
    internal::ReadList(json, "processes", samples.processes);
    return samples;
  } catch (const nlohmann::json::exception& exception) {
    return base::Error(base::Code::kDataLoss,
                       std::string("these are not samples of an agent: ") + exception.what());
  }
}

}  // namespace penstock::api
