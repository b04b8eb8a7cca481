// Reads and prints the sections `resources` and `sharing`.
#include "api/config/node_config_check.h"
#include "api/config/node_config_sections.h"
#include "base/core/strings.h"

namespace penstock::api::internal {

namespace {

using base::MapReader;
using base::Problems;
using base::Value;

constexpr std::int64_t kMaxDevices = 1024;
constexpr std::int64_t kMaxReplicas = 100'000;  // users request one per MiB

std::string_view Text(ShareStrategy strategy) {
  switch (strategy) {
    case ShareStrategy::kNone: return "none";
    case ShareStrategy::kTimeSlicing: return "time-slicing";
    case ShareStrategy::kMps: return "mps";
  }
  return "none";
}

ShareStrategy StrategyOf(std::string_view text) {
  return text == "mps"            ? ShareStrategy::kMps
         : text == "time-slicing" ? ShareStrategy::kTimeSlicing
                                  : ShareStrategy::kNone;
}

/// Reads the number of shares and the strategy; each requires the other.
void ReadShape(MapReader& reader, SharingRule& rule) {
  const auto strategy = reader.OneOf("strategy", {"none", "time-slicing", "mps"});
  const auto replicas = reader.Int("replicas", 1, kMaxReplicas);
  rule.strategy = StrategyOf(strategy.value_or("none"));
  rule.replicas = static_cast<int>(replicas.value_or(1));
  if (!reader.Has("strategy") && !reader.Has("replicas")) {
    reader.Require("strategy");
  } else if (rule.strategy == ShareStrategy::kNone && rule.replicas > 1 &&
             (strategy || !reader.Has("strategy"))) {
    reader.Problem("replicas",
                   "asks for " + std::to_string(rule.replicas) +
                       " shares without saying how: add strategy: time-slicing, or strategy: mps");
  } else if (rule.strategy != ShareStrategy::kNone && !reader.Has("replicas")) {
    reader.Require("replicas");
  }
}

SharingRule ReadRule(const Value& item, const std::string& where, Problems& problems) {
  MapReader reader(item, where, problems);
  SharingRule rule;
  rule.resource = reader.String("resource").value_or("");
  if (reader.Has("resource") && rule.resource.empty())
    reader.Problem("resource", "is empty; leave the key out to mean any");
  rule.devices = ReadSelectors(reader, problems);
  rule.most = static_cast<int>(reader.Int("most", 1, kMaxDevices).value_or(0));
  ReadShape(reader, rule);
  rule.rename = reader.String("rename").value_or("");
  if (reader.Has("rename") && rule.rename.empty())
    reader.Problem("rename", "is empty; leave the key out to keep the resource's name");
  rule.fail_requests_greater_than_one = reader.Bool("failRequestsGreaterThanOne").value_or(false);
  reader.Finish();
  return rule;
}

std::string RuleText(const SharingRule& rule) {
  std::vector<std::string> parts;
  if (!rule.resource.empty()) parts.push_back("resource: " + Quoted(rule.resource));
  if (!rule.devices.empty()) parts.push_back("devices: " + SelectorsText(rule.devices));
  if (rule.most > 0) parts.push_back("most: " + std::to_string(rule.most));
  parts.push_back("strategy: " + std::string(Text(rule.strategy)));
  parts.push_back("replicas: " + std::to_string(rule.replicas));
  if (!rule.rename.empty()) parts.push_back("rename: " + Quoted(rule.rename));
  if (rule.fail_requests_greater_than_one) parts.emplace_back("failRequestsGreaterThanOne: true");
  return "    - {" + base::Join(parts, ", ") + "}\n";
}

}  // namespace

void ReadResources(MapReader& top, Problems& problems, NodeConfig& config) {
  MapReader reader(MapAt(top, "resources"), "resources", problems);
  config.resource_per_model = reader.Bool("perModel").value_or(config.resource_per_model);
  if (const Value* list = reader.List("names")) {
    for (const Value& item : *list->list) {
      MapReader rule(item, "resources.names[" + std::to_string(config.resources.size()) + "]",
                     problems);
      for (const char* key : {"pattern", "name"}) rule.Require(key);
      config.resources.push_back(
          {rule.String("pattern").value_or("*"), rule.String("name").value_or("")});
      if (config.resources.back().pattern.empty())
        rule.Problem("pattern", "is empty; write \"*\" to mean all models");
      rule.Finish();
    }
  }
  reader.Finish();
}

void ReadSharing(MapReader& top, Problems& problems, SharingConfig& sharing) {
  MapReader reader(MapAt(top, "sharing"), "sharing", problems);
  if (const auto policy = reader.OneOf("policy", {"distributed", "packed"}))
    sharing.policy = *policy == "packed" ? SharePolicy::kPacked : SharePolicy::kDistributed;
  if (const Value* list = reader.List("rules"))
    for (const Value& item : *list->list)
      sharing.rules.push_back(
          ReadRule(item, "sharing.rules[" + std::to_string(sharing.rules.size()) + "]", problems));
  MapReader mps(MapAt(reader, "mps"), "sharing.mps", problems);
  if (auto root = mps.String("root")) sharing.mps_root = *std::move(root);
  if (auto root = mps.String("hostRoot")) sharing.host_mps_root = *std::move(root);
  mps.Finish();
  reader.Finish();
}

std::string ResourcesText(const NodeConfig& config) {
  std::string text = std::string("resources:\n  perModel: ") +
                     (config.resource_per_model ? "true" : "false") + "\n  names:";
  if (config.resources.empty()) return text + " []\n";
  text += "\n";
  for (const ResourceRule& rule : config.resources)
    text += "    - {pattern: " + Quoted(rule.pattern) + ", name: " + Quoted(rule.name) + "}\n";
  return text;
}

std::string SharingText(const SharingConfig& sharing) {
  std::string text = std::string("sharing:\n  policy: ") +
                     (sharing.policy == SharePolicy::kPacked ? "packed" : "distributed") + "\n";
  text += sharing.rules.empty() ? "  rules: []\n" : "  rules:\n";
  for (const SharingRule& rule : sharing.rules) text += RuleText(rule);
  return text + "  mps:\n    root: " + Quoted(sharing.mps_root) +
         "\n    hostRoot: " + Quoted(sharing.host_mps_root) + "\n";
}

}  // namespace penstock::api::internal
