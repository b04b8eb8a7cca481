// Converts usage sums and idle holders to JSON and back.
#include "api/usage.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "base/core/document.h"
#include "base/core/strings.h"

namespace penstock::api {
namespace {

using base::Code;
using base::Error;
using base::MapReader;
using nlohmann::json;

constexpr std::string_view kLabel = "label:";
constexpr double kMax = 1e300;

std::string ToText(const json& document) {
  return document.dump(-1, ' ', false, json::error_handler_t::replace);
}

double Rounded(double value) { return std::round(value * 1000) / 1000; }

void Put(json& out, const UsageSum& sum) {
  out["holders"] = sum.holders;
  out["deviceSeconds"] = Rounded(sum.device_seconds);
  out["busySeconds"] = Rounded(sum.busy_seconds);
  out["measuredSeconds"] = Rounded(sum.measured_seconds);
  out["energyJoules"] = Rounded(sum.energy_joules);
  out["cpuSeconds"] = Rounded(sum.cpu_seconds);
}

UsageSum ReadSum(MapReader& reader) {
  const auto number = [&reader](const char* key) {
    return reader.Number(key, 0, kMax).value_or(0);
  };
  return {.holders = static_cast<std::uint64_t>(reader.Int("holders", 0, INT64_MAX).value_or(0)),
          .device_seconds = number("deviceSeconds"),
          .busy_seconds = number("busySeconds"),
          .measured_seconds = number("measuredSeconds"),
          .energy_joules = number("energyJoules"),
          .cpu_seconds = number("cpuSeconds")};
}

UsageRow ReadRow(const base::Value& item, const std::vector<std::string>& by,
                 base::Problems& problems) {
  MapReader reader(item, "rows", problems);
  UsageRow row{.sum = ReadSum(reader)};
  const base::Value* values = reader.Map("by");
  for (const std::string& key : by) {
    const base::Value* value = values == nullptr ? nullptr : values->Find(key);
    row.by.push_back(value == nullptr ? "" : value->text);
  }
  return row;
}

IdleHolder ReadIdle(const base::Value& item, base::Problems& problems) {
  MapReader reader(item, "idle", problems);
  const auto text = [&reader](const char* key) { return reader.String(key).value_or(""); };
  return {.lease = text("lease"),
          .namespace_name = text("namespace"),
          .pod = text("pod"),
          .container = text("container"),
          .user = text("user"),
          .command = text("command"),
          .device = text("device"),
          .index = static_cast<int>(reader.Int("index", -1, 1 << 20).value_or(-1)),
          .model = text("model"),
          .slot = text("slot"),
          .since = base::ParseTime(text("since")),
          .last_busy = base::ParseTime(text("lastBusy")),
          .idle_seconds = reader.Number("idleSeconds", 0, kMax).value_or(0),
          .memory_bytes =
              static_cast<std::uint64_t>(reader.Int("memoryBytes", 0, INT64_MAX).value_or(0))};
}

Error Damaged(const Error& error) {
  return {Code::kDataLoss, "the agent's answer cannot be read: " + error.message()};
}

}  // namespace

const std::vector<std::string>& UsageKeys() {
  static const std::vector<std::string> keys = {"namespace", "pod",    "container", "user",
                                                "day",       "device", "model",     "node",
                                                "allocator", "lease"};
  return keys;
}

base::Status CheckUsageKeys(const std::vector<std::string>& by) {
  const auto& keys = UsageKeys();
  for (const std::string& key : by) {
    if (key.starts_with(kLabel) && key.size() > kLabel.size()) continue;
    if (key == "door") continue;  // the name of "allocator" in 0.1.0
    if (std::find(keys.begin(), keys.end(), key) != keys.end()) continue;
    const auto meant = base::Nearest(key, keys);
    return Error(Code::kInvalidArgument, "usage cannot be grouped by \"" + key + "\"" +
                                             (meant ? ": did you mean \"" + *meant + "\"?" : "") +
                                             " (keys: " + base::Join(keys, ", ") +
                                             " and label:KEY)");
  }
  return {};
}

std::string ToJson(const UsageReport& report) {
  json rows = json::array();
  for (const UsageRow& row : report.rows) {
    json by = json::object(), out;
    for (std::size_t i = 0; i < report.query.by.size(); ++i) by[report.query.by[i]] = row.by[i];
    Put(out, row.sum);
    out["by"] = std::move(by);
    rows.push_back(std::move(out));
  }
  json total;
  Put(total, report.total);
  json usage = {{"by", report.query.by},
                {"since", base::FormatTime(report.query.since)},
                {"until", base::FormatTime(report.query.until)},
                {"rows", std::move(rows)},
                {"total", std::move(total)}};
  if (report.damaged > 0) usage["damagedLines"] = report.damaged;
  if (!report.problem.empty()) usage["problem"] = report.problem;
  return ToText({{"usage", std::move(usage)}});
}

std::string ToJson(const std::vector<IdleHolder>& idle) {
  json list = json::array();
  for (const IdleHolder& one : idle) {
    json out = {{"lease", one.lease},
                {"device", one.device},
                {"index", one.index},
                {"model", one.model},
                {"slot", one.slot},
                {"since", base::FormatTime(one.since)},
                {"lastBusy", base::FormatTime(one.last_busy)},
                {"idleSeconds", Rounded(one.idle_seconds)},
                {"memoryBytes", one.memory_bytes}};
    for (const auto& [key, value] : {std::pair{"namespace", &one.namespace_name},
                                     {"pod", &one.pod},
                                     {"container", &one.container},
                                     {"user", &one.user},
                                     {"command", &one.command}})
      if (!value->empty()) out[key] = *value;
    list.push_back(std::move(out));
  }
  return ToText({{"idle", std::move(list)}});
}

base::Result<UsageReport> ParseUsageReport(std::string_view text) {
  const auto document = base::ParseJson(text, "answer", {.bytes = 16u << 20});
  if (!document.ok()) return Damaged(document.error());
  const base::Value* usage = document->Find("usage");
  if (usage == nullptr)
    return Error(Code::kDataLoss, "the agent's answer to \"usage\" has no sums");
  base::Problems problems("answer");
  MapReader reader(*usage, "usage", problems);
  UsageReport report;
  report.query.by = reader.Strings("by").value_or(report.query.by);
  report.query.since = base::ParseTime(reader.String("since").value_or(""));
  report.query.until = base::ParseTime(reader.String("until").value_or(""));
  if (const base::Value* rows = reader.List("rows"))
    for (const base::Value& item : *rows->list)
      report.rows.push_back(ReadRow(item, report.query.by, problems));
  if (const base::Value* total = reader.Map("total")) {
    MapReader sums(*total, "total", problems);
    report.total = ReadSum(sums);
  }
  report.damaged = static_cast<std::uint64_t>(reader.Int("damagedLines", 0, INT64_MAX).value_or(0));
  report.problem = reader.String("problem").value_or("");
  if (!problems.empty()) return Damaged(problems.ToError());
  return report;
}

base::Result<std::vector<IdleHolder>> ParseIdleHolders(std::string_view text) {
  const auto document = base::ParseJson(text, "answer", {.bytes = 16u << 20});
  if (!document.ok()) return Damaged(document.error());
  base::Problems problems("answer");
  MapReader reader(*document, "", problems);
  reader.Require("idle");
  std::vector<IdleHolder> idle;
  if (const base::Value* list = reader.List("idle"))
    for (const base::Value& item : *list->list) idle.push_back(ReadIdle(item, problems));
  if (!problems.empty()) return Damaged(problems.ToError());
  return idle;
}

}  // namespace penstock::api
