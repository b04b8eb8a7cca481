// Reads, prints and checks the section `health`.
#include <array>

#include "api/config/node_config_check.h"
#include "api/config/node_config_sections.h"
#include "base/core/quantity.h"
#include "base/core/strings.h"

namespace penstock::api::internal {

namespace {

using base::MapReader;
using base::Problems;
using base::Value;
using namespace std::chrono_literals;

constexpr base::Duration kMinPoll = 100ms;
constexpr base::Duration kMaxPoll = 1h;
constexpr base::Duration kMaxProbation = 24h;

/// A family of codes that backends report (device::Evidence), and the range of its codes.
struct Family {
  std::string_view kind;
  std::int64_t least, most;
};
constexpr std::int64_t kMaxCode = 999'999'999;
constexpr std::array<Family, 11> kFamilies = {{{"xid", 1, 999},
                                               {"sxid", 1, 99'999},
                                               {"recovery-action", 0, 99},
                                               {"unavailable", 0, kMaxCode},
                                               {"lost", 0, kMaxCode},
                                               {"reset-required", 0, kMaxCode},
                                               {"remap-pending", 0, kMaxCode},
                                               {"remap-failure", 0, kMaxCode},
                                               {"ecc-uncorrectable", 0, kMaxCode},
                                               {"poison", 0, kMaxCode},
                                               {"ras", 0, kMaxCode}}};

std::vector<std::string> KindNames() {
  std::vector<std::string> names;
  for (const Family& family : kFamilies) names.emplace_back(family.kind);
  return names;
}

std::vector<std::int64_t> ReadCodes(MapReader& reader, Problems& problems,
                                    const std::string& kind) {
  std::vector<std::int64_t> codes;
  const Value* list = reader.List("codes");
  if (list == nullptr) return codes;
  if (list->list->empty()) reader.Problem("codes", "is empty; leave the key out to mean all codes");
  for (const Value& item : *list->list) {
    bool known = false;
    for (const Family& family : kFamilies)
      known = known || (family.kind == kind && item.kind == Value::Kind::kInt &&
                        item.integer >= family.least && item.integer <= family.most);
    if (known) {
      codes.push_back(item.integer);
    } else {
      problems.Add(item.mark, reader.Path("codes") + ": " +
                                  (item.text.empty() ? "an item" : "\"" + item.text + "\"") +
                                  " is not a code of " + kind + ", which are numbers" +
                                  (kind == "xid" ? " from 1 to 999" : ""));
    }
  }
  return codes;
}

std::vector<HealthRule> ReadPolicy(MapReader& health, Problems& problems) {
  std::vector<HealthRule> rules;
  const Value* list = health.List("policy");
  if (list == nullptr) return rules;
  for (const Value& item : *list->list) {
    MapReader reader(item, "health.policy[" + std::to_string(rules.size()) + "]", problems);
    HealthRule rule;
    rule.kind = reader.OneOf("kind", KindNames()).value_or(rule.kind);
    rule.codes = ReadCodes(reader, problems, rule.kind);
    reader.Require("action");
    rule.action = reader
                      .OneOf("action", {"default", "ignore", "warn", "drain", "reset", "gone",
                                        "at-least-drain"})
                      .value_or("default");
    reader.Finish();
    rules.push_back(std::move(rule));
  }
  return rules;
}

std::string PolicyText(const std::vector<HealthRule>& rules) {
  if (rules.empty()) return "  policy: []\n";
  std::string text = "  policy:\n";
  for (const HealthRule& rule : rules) {
    std::vector<std::string> codes;
    for (const std::int64_t code : rule.codes) codes.push_back(std::to_string(code));
    text += "    - {kind: " + rule.kind + ", " +
            (codes.empty() ? "" : "codes: [" + base::Join(codes, ", ") + "], ") +
            "action: " + rule.action + "}\n";
  }
  return text;
}

}  // namespace

void ReadHealth(MapReader& top, Problems& problems, HealthConfig& health) {
  MapReader reader(MapAt(top, "health"), "health", problems);
  health.poll = reader.Time("poll", kMinPoll, kMaxPoll).value_or(health.poll);
  health.probation = reader.Time("probation", 0s, kMaxProbation).value_or(health.probation);
  health.probation_most =
      reader.Time("probationMost", 0s, kMaxProbation).value_or(health.probation_most);
  if (const auto reset = reader.OneOf("reset", {"never", "idle"}))
    health.reset = *reset == "idle" ? ResetPolicy::kIdle : ResetPolicy::kNever;
  health.policy = ReadPolicy(reader, problems);
  reader.Finish();
}

std::string HealthText(const HealthConfig& health) {
  return "health:\n  poll: " + Text(health.poll) + "\n  probation: " + Text(health.probation) +
         "\n  probationMost: " + Text(health.probation_most) +
         "\n  reset: " + (health.reset == ResetPolicy::kIdle ? "idle" : "never") + "\n" +
         PolicyText(health.policy);
}

void CheckHealth(const HealthConfig& health, const ReportProblem& report) {
  if (health.probation > health.probation_most)
    report("health.probationMost", "is " + base::FormatDuration(health.probation_most) +
                                       ", less than health.probation (" +
                                       base::FormatDuration(health.probation) +
                                       "), its initial value; raise this one or lower the other");
}

}  // namespace penstock::api::internal
