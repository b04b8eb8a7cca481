// Checks the rules of naming and sharing against each other: names that collide, and rules that can
// never apply. Touches no file.
#include <algorithm>

#include "api/config/node_config_check.h"
#include "api/labels.h"
#include "base/core/strings.h"

namespace penstock::api::internal {

namespace {

std::string Key(std::string_view list, std::size_t index, std::string_view leaf) {
  return base::Item(list, index) + (leaf.empty() ? "" : "." + std::string(leaf));
}
std::string RuleKey(std::size_t index, std::string_view leaf) {
  return Key("sharing.rules", index, leaf);
}

bool IsShared(const SharingRule& rule) {
  return rule.strategy != ShareStrategy::kNone && rule.replicas > 1;
}

std::string NoResource(const std::string& name) {
  return "\"" + name +
         "\" is not a resource name: write a domain and a name, as in \"nvidia.com/gpu\"";
}

/// Whether `earlier` matches everything that `later` could match, as far as this is known without
/// the devices.
bool Shadows(const SharingRule& earlier, const SharingRule& later) {
  if (earlier.most > 0 || (!earlier.resource.empty() && earlier.resource != later.resource))
    return false;
  if (earlier.devices.empty()) return true;
  return !later.devices.empty() &&
         std::ranges::all_of(later.devices, [&](const std::string& device) {
           return std::ranges::find(earlier.devices, device) != earlier.devices.end();
         });
}

void CheckNames(const std::vector<ResourceRule>& rules, const ReportProblem& report) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (!IsResourceName(rules[i].name))
      report(Key("resources.names", i, "name"), NoResource(rules[i].name));
    for (std::size_t j = 0; j < i; ++j) {
      if (rules[j].pattern != "*" && rules[j].pattern != rules[i].pattern) continue;
      report(Key("resources.names", i, "pattern"),
             "never takes effect, because " + Key("resources.names", j, "") +
                 " matches the same models and comes before it; put this one first");
      break;
    }
  }
}

/// Returns why the shares of a rule cannot have its name; empty if they can.
std::string RenameProblem(const NodeConfig& config, std::size_t index) {
  const SharingRule& rule = config.sharing.rules[index];
  const std::string name = "\"" + rule.rename + "\" ";
  if (!IsResourceName(rule.rename)) return NoResource(rule.rename);
  if (!IsShared(rule))
    return "is for shares, but this rule creates none; name whole devices with resources.names";
  if (rule.rename == rule.resource) return "";
  for (std::size_t i = 0; i < config.resources.size(); ++i)
    if (config.resources[i].name == rule.rename)
      return name + "is the name of whole devices (" + Key("resources.names", i, "name") +
             "); choose another";
  for (std::size_t i = 0; i < config.sharing.rules.size(); ++i) {
    const SharingRule& other = config.sharing.rules[i];
    const bool taken =
        other.rename.empty() ? other.resource == rule.rename : other.rename == rule.rename;
    if (i == index || !taken || (IsShared(other) && other.strategy == rule.strategy)) continue;
    return name + "is also the name of " +
           (IsShared(other) ? "shares of another kind" : "whole devices") + " (" + RuleKey(i, "") +
           "); choose another";
  }
  return "";
}

void CheckRule(const NodeConfig& config, std::size_t index, const ReportProblem& report) {
  const SharingRule& rule = config.sharing.rules[index];
  if (rule.replicas < 1 || rule.replicas > kMaxReplicas)
    report(RuleKey(index, "replicas"), "is " + std::to_string(rule.replicas) +
                                           ", outside of 1 to " + std::to_string(kMaxReplicas));
  if (!rule.resource.empty() && !IsResourceName(rule.resource))
    report(RuleKey(index, "resource"), NoResource(rule.resource));
  if (!rule.rename.empty())
    if (const std::string problem = RenameProblem(config, index); !problem.empty())
      report(RuleKey(index, "rename"), problem);
  for (std::size_t i = 0; i < index; ++i) {
    if (!Shadows(config.sharing.rules[i], rule)) continue;
    report(RuleKey(index, ""),
           "never takes effect, because " + RuleKey(i, "") +
               " matches the same devices and comes before it; " +
               (rule.devices.empty() ? "remove one of the two" : "put this one first"));
    break;
  }
}

}  // namespace

bool IsResourceName(std::string_view name) {
  const auto slash = name.find('/');
  if (slash == std::string_view::npos || !IsLabelKey(name)) return false;
  const std::string_view domain = name.substr(0, slash);
  return domain != "kubernetes.io" && !domain.ends_with(".kubernetes.io") &&
         !domain.starts_with("requests.");
}

void CheckSharing(const NodeConfig& config, const ReportProblem& report) {
  CheckNames(config.resources, report);
  for (std::size_t i = 0; i < config.sharing.rules.size(); ++i) CheckRule(config, i, report);
}

}  // namespace penstock::api::internal
