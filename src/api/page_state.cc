#include "api/page_state.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "base/core/json_text.h"
#include "base/core/printable.h"
#include "base/core/strings.h"

namespace penstock::api {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kLongestText = 300;  // bytes; a command line can have megabytes
constexpr std::size_t kMostPids = 20;
constexpr float kPercent = 100, kMebibyte = 1 << 20;

std::string Cut(std::string_view text) { return base::Shortened(text, kLongestText, "…"); }

/// Keys without a value are left out: most are empty, and there may be thousands of holders.
void Put(Json& json, const char* key, std::string_view text) {
  if (!text.empty()) json[key] = Cut(text);
}

/// With three decimal places, and whole numbers without any.
void Put(Json& json, const char* key, const std::optional<double>& number) {
  constexpr double kDigits = 1e3, kLargestWhole = 9e15;
  if (!number || !std::isfinite(*number)) return;
  if (*number == std::floor(*number) && std::abs(*number) < kLargestWhole) {
    json[key] = static_cast<std::int64_t>(*number);
  } else {
    json[key] = std::round(*number * kDigits) / kDigits;
  }
}

Json ToJsonValue(const PageHolder& item, PageDetail detail) {
  const HolderReport& holder = item.holder;
  Json json = Json::object();
  Put(json, "kind", holder.kind);
  Put(json, "state", holder.state);
  Put(json, "user", holder.user);
  Put(json, "namespace", holder.namespace_name);
  Put(json, "pod", holder.pod);
  Put(json, "container", holder.container);
  Put(json, "since", holder.since);
  Put(json, "note", holder.note);
  if (item.slots > 1) json["slots"] = item.slots;
  if (detail == PageDetail::kHolders) return json;
  Put(json, "command", holder.command);
  if (!holder.pids.empty())
    json["pids"] = std::vector(
        holder.pids.begin(),
        holder.pids.begin() + static_cast<std::ptrdiff_t>(std::min(holder.pids.size(), kMostPids)));
  return json;
}

Json ToJsonValue(const QueuedRun& run, PageDetail detail) {
  Json json = Json::object();
  Put(json, "ticket", run.ticket);
  Put(json, "user", run.user);
  json["count"] = run.count;
  if (run.share > 1) json["share"] = run.share;
  Put(json, "model", run.model);
  Put(json, "profile", run.profile);
  if (run.least_memory.count > 0) json["minMemory"] = run.least_memory.count;
  if (!run.devices.empty()) Put(json, "devices", base::Join(run.devices, ", "));
  Put(json, "since", run.since);
  Put(json, "expectedStart", run.expected_start);
  Put(json, "reason", run.reason);
  if (detail == PageDetail::kProcesses) Put(json, "command", run.command);
  return json;
}

template <typename Item>
Json ListOf(const std::vector<Item>& items, PageDetail detail, std::size_t from, std::size_t most) {
  Json list = Json::array();
  for (std::size_t i = from; i < items.size() && i - from < most; ++i)
    list.push_back(ToJsonValue(items[i], detail));
  return list;
}

Json ToJsonValue(const PageDevice& item, PageDetail detail) {
  const DeviceReport& device = item.report;
  Json json = {{"id", device.id}};
  if (device.index >= 0) json["index"] = device.index;
  Put(json, "model", device.model);
  Put(json, "vendor", device.vendor);
  Put(json, "kind", device.kind);
  Put(json, "pci", device.pci);
  json["memoryBytes"] = device.memory_bytes;
  Json health = {{"state", device.health_state}};
  Put(health, "reason", device.health_reason);
  Put(health, "since", device.health_since);
  json["health"] = std::move(health);
  Put(json, "probationUntil", device.probation_until);
  Put(json, "allocator", device.allocator);
  Put(json, "withheld", device.withheld);
  Put(json, "resource", device.resource);
  Put(json, "sharing", device.sharing);
  json["shares"] = device.shares;
  json["free"] = device.free;
  Put(json, "warning", device.warning);
  Put(json, "telemetryProblem", device.telemetry_problem);
  Put(json, "utilization", item.utilization);
  Put(json, "memoryUsedBytes", item.memory_used);
  Put(json, "powerWatts", item.power);
  Put(json, "powerLimitWatts", item.power_limit);
  Put(json, "temperatureCelsius", item.temperature);
  json["holders"] = ListOf(item.holders, detail, 0, kHoldersInState);
  json["holderCount"] = item.holders.size();
  return json;
}

void AppendNumber(std::string& text, float value) {
  if (!std::isfinite(value)) {
    text += "null";
    return;
  }
  char buffer[24];
  const auto end = std::to_chars(std::begin(buffer), std::end(buffer), std::llround(value)).ptr;
  text.append(buffer, end);
}

/// ,"key":[1,null,2]; leading unknown values are left out.
void AppendLine(std::string& text, const char* key, const std::vector<float>& values,
                float factor) {
  const auto first =
      std::find_if(values.begin(), values.end(), [](float value) { return std::isfinite(value); });
  if (first == values.end()) return;
  if (text.back() != '{') text += ',';
  text.append("\"").append(key).append("\":[");
  for (auto value = first; value != values.end(); ++value) {
    if (value != first) text += ',';
    AppendNumber(text, *value * factor);
  }
  text += ']';
}

}  // namespace

std::string ToJson(const PageState& state, PageDetail detail, std::string_view build,
                   const std::vector<std::string>& nodes) {
  Json vendors = Json::array(), conditions = Json::array(), devices = Json::array();
  for (const VendorReport& vendor : state.vendors) {
    Json one = {{"vendor", vendor.vendor}};
    Put(one, "driver", vendor.driver);
    Put(one, "reason", vendor.reason);
    vendors.push_back(std::move(one));
  }
  for (const ConditionReport& condition : state.conditions) {
    Json one = {{"type", condition.type}, {"status", condition.status}};
    Put(one, "reason", condition.reason);
    Put(one, "message", condition.message);
    Put(one, "since", condition.since);
    conditions.push_back(std::move(one));
  }
  for (const PageDevice& device : state.devices) devices.push_back(ToJsonValue(device, detail));
  Json json = {{"build", build},
               {"node", state.node},
               {"version", state.version},
               {"vendors", std::move(vendors)},
               {"conditions", std::move(conditions)}};
  Put(json, "configurationProblem", state.configuration_problem);
  json["devices"] = std::move(devices);
  json["removed"] = ListOf(state.removed, detail, 0, kHoldersInState);
  json["removedCount"] = state.removed.size();
  json["queue"] = ListOf(state.queue, detail, 0, kRunsInState);
  json["queueLength"] = state.queue.size();
  json["nodes"] = nodes;
  return base::JsonText(json);
}

std::optional<std::string> PageHoldersToJson(const PageState& state, PageDetail detail,
                                             std::string_view device, std::size_t from) {
  const std::vector<PageHolder>* holders = device.empty() ? &state.removed : nullptr;
  for (const PageDevice& one : state.devices)
    if (one.report.id == device) holders = &one.holders;
  if (holders == nullptr) return std::nullopt;
  return base::JsonText(
      Json{{"holders", ListOf(*holders, detail, from, kItemsOfPage)}, {"count", holders->size()}});
}

std::string PageQueueToJson(const PageState& state, PageDetail detail, std::size_t from) {
  return base::JsonText(Json{{"queue", ListOf(state.queue, detail, from, kItemsOfPage)},
                             {"count", state.queue.size()}});
}

std::string PageProblemToJson(std::string_view problem) {
  return base::JsonText(Json{{"problem", Cut(problem)}});
}

std::string ToJson(const PageHistory& history) {
  std::string text =
      "{\"stepSeconds\":" + std::to_string(std::llround(history.step_seconds)) + ",\"devices\":{";
  for (const auto& [id, device] : history.devices) {
    if (text.back() != '{') text += ',';
    text += base::JsonText(Json(id)) + ":{";
    AppendLine(text, "utilization", device.utilization, kPercent);
    AppendLine(text, "memory", device.memory_used, 1 / kMebibyte);
    AppendLine(text, "power", device.power, 1);
    text += '}';
  }
  return text + "}}";
}

}  // namespace penstock::api
