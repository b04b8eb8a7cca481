// A label that we applied and that is another one now was changed by somebody else: the wish is the same.
#include "door/cluster_labels.h"

#include <algorithm>
#include <vector>

#include "base/core/strings.h"

namespace penstock::door {

using namespace std::chrono_literals;

namespace {

constexpr base::Duration kPeace = 30min;  // without somebody changing our labels: then they are mended quickly again

/// Says when the agent began, nothing of the node.
bool IsTimestamp(std::string_view key) { return key.ends_with("/gfd.timestamp"); }

const std::string* ValueOf(const NodeView& node, const std::string& key) {
  const auto found = node.labels.find(key);
  return found == node.labels.end() ? nullptr : &found->second;
}

bool Differs(const NodeView& node, const std::string& key, const std::string& value) {
  const std::string* shown = ValueOf(node, key);
  return shown == nullptr || (*shown != value && !IsTimestamp(key));
}

std::string Name(const NodeView& node, const std::string& key) {
  const auto other = node.others.find(key);
  return key + (other == node.others.end() ? "" : " (" + other->second + ")");
}

}  // namespace

bool LabelKeeper::Changed(const NodeView& node, const std::string& key, const std::string& value) const {
  const auto applied = applied_.find(key);
  return applied != applied_.end() && applied->second == value && Differs(node, key, value);
}

/// Whether labels that others changed have to wait; if so, until when is in the plan.
bool LabelKeeper::Wait(base::TimePoint now, LabelPlan& plan) {
  if (!due_) {
    if (mended_at_ && now - *mended_at_ > kPeace) backoff_.Reset();
    due_ = now + backoff_.Next();
  }
  if (now >= *due_) return false;
  plan.again = *due_ - now;
  return true;
}

LabelPlan LabelKeeper::Decide(const NodeView& node, const LabelSet& wished, bool carried, base::TimePoint now) {
  LabelPlan plan;
  std::vector<std::string> contested;
  for (const auto& [key, value] : wished) {
    const bool held = node.ours.contains(key) && ValueOf(node, key) != nullptr;
    if (carried || node.nfd.contains(key)) {
      if (held) plan.set[key] = *ValueOf(node, key);
      continue;
    }
    if (held && !Differs(node, key, value)) applied_[key] = value;  // by an agent before us
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
  for (const std::string& key : node.ours)
    if (!wished.contains(key) && node.nfd.contains(key) && ValueOf(node, key) != nullptr) plan.set[key] = *ValueOf(node, key);
  plan.contested = base::Join(contested, ", ");
  plan.write = std::any_of(plan.set.begin(), plan.set.end(), [&](const auto& label) { return Differs(node, label.first, label.second); }) ||
               std::any_of(node.ours.begin(), node.ours.end(), [&](const std::string& key) { return !plan.set.contains(key); });
  return plan;
}

void LabelKeeper::Wrote(const LabelSet& set, base::TimePoint now) {
  applied_ = set;
  if (due_ && now >= *due_) {
    due_.reset();
    mended_at_ = now;
  }
}

}  // namespace penstock::door
