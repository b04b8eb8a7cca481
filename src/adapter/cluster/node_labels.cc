// A label that we applied and that has another value now was changed by another client: the desired
// value is the same.
#include "adapter/cluster/node_labels.h"

#include <algorithm>
#include <vector>

#include "api/labels.h"
#include "base/core/strings.h"

namespace penstock::adapter::cluster {

using namespace std::chrono_literals;

namespace {

// After this long without changes by others, our labels are restored quickly again.
constexpr base::Duration kPeace = 30min;

/// Shows when the agent started, not a property of the node.
bool IsTimestamp(std::string_view key) { return key.ends_with("/gfd.timestamp"); }

const std::string* ValueOf(const ObservedNode& node, const std::string& key) {
  const auto found = node.labels.find(key);
  return found == node.labels.end() ? nullptr : &found->second;
}

bool Differs(const ObservedNode& node, const std::string& key, const std::string& value) {
  const std::string* shown = ValueOf(node, key);
  return shown == nullptr || (*shown != value && !IsTimestamp(key));
}

std::string Name(const ObservedNode& node, const std::string& key) {
  const auto other = node.others.find(key);
  return key + (other == node.others.end() ? "" : " (" + other->second + ")");
}

}  // namespace

bool NodeLabelReconciler::Changed(const ObservedNode& node, const std::string& key,
                                  const std::string& value) const {
  const auto applied = applied_.find(key);
  return applied != applied_.end() && applied->second == value && Differs(node, key, value);
}

/// Whether labels that others changed must wait; if so, sets plan.again.
bool NodeLabelReconciler::Wait(base::TimePoint now, LabelPlan& plan) {
  if (!due_) {
    if (restored_at_ && now - *restored_at_ > kPeace) backoff_.Reset();
    due_ = now + backoff_.Next();
  }
  if (now >= *due_) return false;
  plan.again = *due_ - now;
  return true;
}

LabelPlan NodeLabelReconciler::Decide(const ObservedNode& node, const NodeLabelSet& desired,
                                      bool carried, base::TimePoint now) {
  LabelPlan plan;
  std::vector<std::string> contested, other_values;
  for (const auto& [key, value] : desired) {
    const bool held = node.own.contains(key) && ValueOf(node, key) != nullptr;
    if (carried || node.nfd.contains(key)) {
      if (held) plan.set[key] = *ValueOf(node, key);
      if (!carried && !key.starts_with(api::kFeaturePrefix) && Differs(node, key, value))
        other_values.push_back(key);
      continue;
    }
    if (held && !Differs(node, key, value)) applied_[key] = value;  // applied by an earlier agent
    if (Changed(node, key, value)) {
      contested.push_back(Name(node, key));
      if (Wait(now, plan)) {
        if (held) plan.set[key] = *ValueOf(node, key);
        continue;
      }
    }
    plan.set[key] = value;
  }
  if (contested.empty()) due_.reset();
  for (const std::string& key : node.own)
    if (!desired.contains(key) && node.nfd.contains(key) && ValueOf(node, key) != nullptr)
      plan.set[key] = *ValueOf(node, key);
  plan.contested = base::Join(contested, ", ");
  plan.other_values = base::Join(other_values, ", ");
  plan.write =
      std::ranges::any_of(
          plan.set, [&](const auto& label) { return Differs(node, label.first, label.second); }) ||
      std::ranges::any_of(node.own,
                          [&](const std::string& key) { return !plan.set.contains(key); });
  return plan;
}

void NodeLabelReconciler::Wrote(const NodeLabelSet& set, base::TimePoint now) {
  applied_ = set;
  if (due_ && now >= *due_) {
    due_.reset();
    restored_at_ = now;
  }
}

}  // namespace penstock::adapter::cluster
