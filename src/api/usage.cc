// Converts usage sums and idle holders to JSON and back.
#include "api/usage.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/core/fields.h"
#include "base/core/strings.h"

namespace penstock::api {
namespace {

using nlohmann::json;

constexpr std::string_view kLabel = "label:";
constexpr base::FieldLimits kLimits{.parse = {.bytes = 16u << 20},
                                    .unknown = base::UnknownKeys::kIgnored};

/// A row as it is written: with the keys of the query.
struct KeyedRow {
  std::map<std::string, std::string> by;
  UsageSum sum;
};

template <typename Visit, base::Of<KeyedRow> T>
void VisitFields(Visit& visit, T& row) {
  VisitFields(visit, row.sum);
  visit("by", row.by);
}

Error Damaged(const Error& error) {
  return {Code::kDataLoss, "the agent's answer cannot be read: " + error.message()};
}

}  // namespace

template <typename Visit, base::Of<UsageSum> T>
static void VisitFields(Visit& visit, T& sum) {
  visit("holders", sum.holders);
  visit("deviceSeconds", sum.device_seconds, {.rounded = true});
  visit("busySeconds", sum.busy_seconds, {.rounded = true});
  visit("measuredSeconds", sum.measured_seconds, {.rounded = true});
  visit("energyJoules", sum.energy_joules, {.rounded = true});
  visit("cpuSeconds", sum.cpu_seconds, {.rounded = true});
}

template <typename Visit, base::Of<UsageReport> T>
static void VisitFields(Visit& visit, T& report) {
  visit("by", report.query.by);
  visit("since", report.query.since);
  visit("until", report.query.until);
  std::vector<KeyedRow> rows;
  for (const UsageRow& row : report.rows) {
    KeyedRow& keyed = rows.emplace_back(KeyedRow{{}, row.sum});
    for (std::size_t i = 0; i < row.by.size(); ++i) keyed.by[report.query.by[i]] = row.by[i];
  }
  visit("rows", rows);
  if constexpr (Visit::kReads)
    for (KeyedRow& keyed : rows) {
      UsageRow& row = report.rows.emplace_back(UsageRow{{}, keyed.sum});
      for (const std::string& key : report.query.by) row.by.push_back(keyed.by[key]);
    }
  visit("total", report.total);
  visit("damagedLines", report.damaged, {.if_any = true});
  visit("problem", report.problem, {.if_any = true});
}

template <typename Visit, base::Of<IdleHolder> T>
static void VisitFields(Visit& visit, T& idle) {
  constexpr std::int64_t kMaxIndex = 1 << 20;
  visit("lease", idle.lease);
  visit("namespace", idle.namespace_name, {.if_any = true});
  visit("pod", idle.pod, {.if_any = true});
  visit("container", idle.container, {.if_any = true});
  visit("user", idle.user, {.if_any = true});
  visit("command", idle.command, {.if_any = true});
  visit("device", idle.device);
  visit("index", idle.index, {.least = -1, .most = kMaxIndex});
  visit("number", idle.number, {.if_any = true});
  visit("model", idle.model);
  visit("slot", idle.slot);
  visit("since", idle.since);
  visit("lastBusy", idle.last_busy);
  visit("idleSeconds", idle.idle_seconds, {.rounded = true});
  visit("memoryBytes", idle.memory_bytes);
}

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
    if (std::ranges::find(keys, key) != keys.end()) continue;
    const auto meant = base::Nearest(key, keys);
    return Error(Code::kInvalidArgument, "usage cannot be grouped by \"" + key + "\"" +
                                             (meant ? ": did you mean \"" + *meant + "\"?" : "") +
                                             " (keys: " + base::Join(keys, ", ") +
                                             " and label:KEY)");
  }
  return {};
}

std::string ToJson(const UsageReport& report) {
  return base::JsonText(json{{"usage", base::ToJsonObject<json>(report)}});
}

std::string ToJson(const std::vector<IdleHolder>& idle) {
  json answer;
  base::StructWriter<json>{answer}("idle", idle);
  return base::JsonText(answer);
}

base::Result<UsageReport> ParseUsageReport(std::string_view text) {
  std::optional<UsageReport> report;
  const auto read = base::ReadFields(text, "answer", kLimits,
                                     [&](base::StructReader& reader) { reader("usage", report); });
  if (!read.ok()) return Damaged(read.error());
  if (!report) return Error(Code::kDataLoss, "the agent's answer to \"usage\" has no sums");
  return *std::move(report);
}

base::Result<std::vector<IdleHolder>> ParseIdleHolders(std::string_view text) {
  std::vector<IdleHolder> idle;
  const auto read = base::ReadFields(text, "answer", kLimits, [&](base::StructReader& reader) {
    reader("idle", idle, {.required = true});
  });
  if (!read.ok()) return Damaged(read.error());
  return idle;
}

}  // namespace penstock::api
