// The fields of an upgrade policy, and their effects.
#include <algorithm>
#include <climits>

#include "api/cluster/label_selector.h"
#include "api/compat/nvidia/driver_section.h"

namespace penstock::api::compat::internal {

namespace {

using base::Value;
using enum FieldType;

constexpr std::int64_t kLongestWait = 10LL * 365 * 24 * 3600;  // seconds that a Duration can have

base::Duration SecondsIn(const Value& value) {
  return std::chrono::seconds(std::min(value.integer, kLongestWait));
}

void SetPodSelector(PolicyWork& work, const Value& value, std::string& target) {
  if (const auto selector = LabelSelector::Parse(value.text); !selector.ok())
    return work.Problem(selector.error().message());
  target = value.text;
}

template <UpgradeEviction& (*kRules)(UpgradePolicy&)>
void AddEviction(std::vector<ResourceField>& fields, const std::string& path) {
  fields.push_back({.path = path + ".force",
                    .type = kBool,
                    .text = "Whether pods are evicted, too, that no controller would start again.",
                    .schema_default = "false",
                    .apply = [](PolicyWork& work, const Value& value) {
                      kRules(work.driver.upgrade).force = value.boolean;
                    }});
  fields.push_back({.path = path + ".deleteEmptyDir",
                    .type = kBool,
                    .text = "Whether pods with emptyDir volumes are evicted, too.",
                    .schema_default = "false",
                    .apply = [](PolicyWork& work, const Value& value) {
                      kRules(work.driver.upgrade).delete_empty_dir = value.boolean;
                    }});
  fields.push_back({.path = path + ".timeoutSeconds",
                    .type = kInt,
                    .text = "How long the evictions may take; 0: no limit.",
                    .schema_default = "300",
                    .least = 0,
                    .apply = [](PolicyWork& work, const Value& value) {
                      kRules(work.driver.upgrade).timeout = SecondsIn(value);
                    }});
}

UpgradeEviction& PodDeletionOf(UpgradePolicy& policy) { return policy.pod_deletion; }
UpgradeEviction& DrainOf(UpgradePolicy& policy) { return policy.drain.eviction; }

void AddPace(std::vector<ResourceField>& fields, const std::string& at,
             std::string_view automatic) {
  fields.push_back({.path = at + ".autoUpgrade",
                    .type = kBool,
                    .text = "Whether nodes get a changed driver by themselves; otherwise only on "
                            "request.",
                    .schema_default = automatic,
                    .unset = automatic,
                    .usual = {"true"},
                    .apply = [](PolicyWork& work, const Value& value) {
                      work.driver.upgrade.automatic = value.boolean;
                    }});
  fields.push_back({.path = at + ".maxParallelUpgrades",
                    .type = kInt,
                    .text = "Nodes that are upgraded at the same time; 0: no limit. A node that "
                            "failed does not count.",
                    .schema_default = "1",
                    .least = 0,
                    .apply = [](PolicyWork& work, const Value& value) {
                      work.driver.upgrade.max_parallel =
                          static_cast<int>(std::min<std::int64_t>(value.integer, INT_MAX));
                    }});
  fields.push_back({.path = at + ".maxUnavailable",
                    .type = kNumberOrPercent,
                    .text = "Nodes that are cordoned or not ready at the same time; a percentage "
                            "is rounded up.",
                    .schema_default = "25%",
                    .usual = {"25%"},
                    .apply = [](PolicyWork& work, const Value& value) {
                      if (!value.text.empty()) work.driver.upgrade.max_unavailable = value.text;
                    }});
}

}  // namespace

void AddUpgradeSection(std::vector<ResourceField>& fields, const std::string& at,
                       std::string_view automatic) {
  fields.push_back({.path = at, .type = kMap});
  AddPace(fields, at, automatic);
  const std::string wait = at + ".waitForCompletion";
  fields.push_back({.path = wait, .type = kMap});
  fields.push_back({.path = wait + ".podSelector",
                    .text = "Labels of the pods that are to end before a node is upgraded.",
                    .apply = [](PolicyWork& work, const Value& value) {
                      SetPodSelector(work, value, work.driver.upgrade.wait.pod_selector);
                    }});
  fields.push_back({.path = wait + ".timeoutSeconds",
                    .type = kInt,
                    .text = "How long they are waited for; 0: no limit.",
                    .schema_default = "0",
                    .least = 0,
                    .apply = [](PolicyWork& work, const Value& value) {
                      work.driver.upgrade.wait.timeout = SecondsIn(value);
                    }});
  fields.push_back({.path = at + ".podDeletion", .type = kMap});
  AddEviction<PodDeletionOf>(fields, at + ".podDeletion");
  const std::string drain = at + ".drain";
  fields.push_back({.path = drain, .type = kMap});
  fields.push_back({.path = drain + ".enable",
                    .type = kBool,
                    .text = "Whether pods that hold devices are evicted by the rules of drain "
                            "where podDeletion failed; other pods of the node stay.",
                    .schema_default = "false",
                    .apply = [](PolicyWork& work, const Value& value) {
                      work.driver.upgrade.drain.enable = value.boolean;
                    }});
  AddEviction<DrainOf>(fields, drain);
  fields.push_back({.path = drain + ".podSelector",
                    .text = "Only pods with these labels are evicted; if not set, all that hold "
                            "devices.",
                    .apply = [](PolicyWork& work, const Value& value) {
                      SetPodSelector(work, value, work.driver.upgrade.drain.pod_selector);
                    }});
}

}  // namespace penstock::api::compat::internal
