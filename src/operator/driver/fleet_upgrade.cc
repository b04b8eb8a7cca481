#include "operator/driver/fleet_upgrade.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

#include "api/compat/nvidia/driver_names.h"
#include "base/core/strings.h"

namespace penstock::cluster {
namespace {

using api::UpgradePolicy;
using base::WallTime;
using enum UpgradeState;

/// A node takes its place as soon as it is to begin, and has it until the server has answered that
/// it is done: it is cordoned a step after the one, and until the other.
bool HasPlace(const UpgradeNode& node) { return IsUnderway(node.record.state) || node.is_ending; }

bool IsUnavailable(const UpgradeNode& node) {
  return HasPlace(node) ||
         (node.record.state != kFailed && (node.cordoned || node.not_ready_since));
}

/// Whether the driver that the node should have failed there. A node on which no pod could be
/// evicted says nothing about the driver.
bool HasFailed(const UpgradeNode& node) {
  return !node.wanted.empty() && node.record.failed_target == node.wanted && node.record.broken;
}

UpgradeCounts CountsOf(const std::vector<UpgradeNode>& nodes) {
  UpgradeCounts counts{.nodes = nodes.size()};
  for (const UpgradeNode& node : nodes) {
    counts.unavailable += IsUnavailable(node) ? 1 : 0;
    counts.underway += HasPlace(node) ? 1 : 0;
    if (node.is_ending) continue;
    counts.done += node.record.state == kDone ? 1 : 0;
    counts.required += node.record.state == kRequired ? 1 : 0;
    counts.failed += node.record.state == kFailed ? 1 : 0;
  }
  return counts;
}

bool HasLabels(const UpgradeNode& node, const std::map<std::string, std::string>& wanted) {
  return std::ranges::all_of(wanted, [&node](const auto& label) {
    const auto found = node.labels.find(label.first);
    return found != node.labels.end() && found->second == label.second;
  });
}

bool IsLeftOut(const UpgradeNode& node) {
  const auto found = node.labels.find(std::string(api::compat::kUpgradeSkipLabel));
  return node.wanted.empty() || (found != node.labels.end() && found->second == "true");
}

/// The nodes that go before the others, the first by name.
std::vector<const UpgradeNode*> CanariesOf(const std::vector<UpgradeNode>& nodes,
                                           const api::UpgradeCanaries& rules) {
  std::vector<const UpgradeNode*> canaries;
  if (rules.node_selector.empty() && rules.count.empty()) return canaries;
  for (const UpgradeNode& node : nodes)
    if (!IsLeftOut(node) && HasLabels(node, rules.node_selector)) canaries.push_back(&node);
  std::ranges::sort(canaries, {}, &UpgradeNode::name);
  if (const auto most = ScaledTo(rules.count, canaries.size()); most && *most < canaries.size())
    canaries.resize(*most);
  return canaries;
}

/// Decides for one fleet.
class Admission {
 public:
  Admission(const std::vector<UpgradeNode>& nodes, const UpgradePolicy& policy, WallTime now)
      : nodes_(nodes), policy_(policy), now_(now), canaries_(CanariesOf(nodes, policy.canaries)) {
    plan_.counts = CountsOf(nodes);
    for (const UpgradeNode* canary : canaries_) canary_names_.insert(canary->name);
  }

  FleetPlan Plan() {
    Gate();
    Admit();
    for (const UpgradeNode& node : nodes_) Step(node);
    return std::move(plan_);
  }

 private:
  void LookAt(std::optional<WallTime> time) {
    if (time && (!plan_.look_again || *time < *plan_.look_again)) plan_.look_again = time;
  }

  void Close(std::string reason, std::string message) {
    if (!plan_.gate.empty()) return;
    plan_.gate = std::move(reason);
    plan_.gate_message = std::move(message);
  }

  void Gate() {
    if (policy_.paused) Close("Paused", "the upgrade is paused");
    const auto failures = static_cast<std::size_t>(std::ranges::count_if(nodes_, HasFailed));
    const auto most = ScaledTo(policy_.max_failures, nodes_.size());
    if (most && failures > *most)
      Close("TooManyFailures",
            std::to_string(failures) + " nodes failed, and maxFailures is " + policy_.max_failures);
    if (!policy_.canaries.node_selector.empty() && canaries_.empty())
      Close("CanariesFirst", "no node has the labels of canaries.nodeSelector");
    for (const UpgradeNode* canary : canaries_)
      if (HasFailed(*canary))
        Close("CanaryFailed", "node " + canary->name + ": " + canary->record.message);
    for (const UpgradeNode* canary : canaries_) AwaitCanary(*canary);
  }

  void AwaitCanary(const UpgradeNode& canary) {
    const bool done = canary.record.state == kDone && canary.pod.target == canary.wanted;
    const WallTime soaked =
        canary.record.since + std::chrono::duration_cast<WallTime::duration>(policy_.canaries.soak);
    if (done && now_ >= soaked) return;
    if (done) LookAt(soaked);
    std::string message =
        "node " + canary.name +
        (done ? " is upgraded, but not for as long as canaries.soak" : " goes first");
    if (!canary.record.message.empty()) message += ": " + canary.record.message;
    Close("CanariesFirst", std::move(message));
  }

  struct Candidate {
    const UpgradeNode* node = nullptr;
    bool canary = false, cordoned = false, retry = false;
    auto Order() const {
      return std::tuple(!canary, !cordoned, retry, std::string_view(node->name));
    }
  };

  void Admit() {
    std::vector<Candidate> candidates;
    for (const UpgradeNode& node : nodes_) {
      Readiness readiness = ReadinessToBegin(node, policy_, now_);
      LookAt(readiness.look_again);
      if (readiness.begins && !node.is_ending)
        candidates.push_back({&node, canary_names_.contains(node.name),
                              node.cordoned && !node.record.cordoned, readiness.retry});
      waiting_[node.name] = std::move(readiness);
    }
    std::ranges::sort(candidates, {}, &Candidate::Order);
    std::size_t underway = plan_.counts.underway, unavailable = plan_.counts.unavailable;
    for (const Candidate& candidate : candidates) {
      Readiness& readiness = waiting_[candidate.node->name];
      readiness = WhyNot(candidate, underway, unavailable);
      if (!readiness.begins) continue;
      ++underway;
      // A node that failed counts again as soon as it is tried again.
      if (!IsUnavailable(*candidate.node)) ++unavailable;
    }
  }

  Readiness WhyNot(const Candidate& candidate, std::size_t underway, std::size_t unavailable) {
    const auto wait = [](std::string reason, std::string message) {
      return Readiness{.reason = std::move(reason), .message = std::move(message)};
    };
    const bool passes = candidate.retry || candidate.node->record.requested ||
                        (candidate.canary && plan_.gate == "CanariesFirst");
    if (!plan_.gate.empty() && (policy_.paused || !passes))
      return wait(plan_.gate, plan_.gate_message);
    if (policy_.max_parallel > 0 && underway >= static_cast<std::size_t>(policy_.max_parallel))
      return wait("MaxParallel", "as many nodes as maxParallel allows are being upgraded");
    const auto most = ScaledTo(policy_.max_unavailable, nodes_.size());
    if (most && !candidate.cordoned && unavailable >= *most)
      return wait("MaxUnavailable",
                  "as many nodes as maxUnavailable allows are cordoned or not ready");
    return {.begins = true};
  }

  void Step(const UpgradeNode& node) {
    const Readiness& readiness = waiting_[node.name];
    NodeStep step = NextStep(node, policy_, readiness.begins, now_);
    if (step.reason.empty() && !readiness.begins) {
      step.reason = readiness.reason;
      step.message = readiness.message;
    }
    LookAt(step.look_again);
    plan_.steps.emplace(node.name, std::move(step));
  }

  const std::vector<UpgradeNode>& nodes_;
  const UpgradePolicy& policy_;
  const WallTime now_;
  const std::vector<const UpgradeNode*> canaries_;
  std::set<std::string> canary_names_;
  std::map<std::string, Readiness> waiting_;
  FleetPlan plan_;
};

}  // namespace

std::optional<std::size_t> ScaledTo(const std::string& text, std::size_t total) {
  const bool percent = text.ends_with('%');
  const auto number = base::ParseUint(text.substr(0, text.size() - (percent ? 1 : 0)));
  if (!number) return std::nullopt;
  if (!percent) return *number;
  return (total * std::min<std::uint64_t>(*number, 100) + 99) / 100;
}

FleetPlan PlanUpgrades(const std::vector<UpgradeNode>& nodes, const UpgradePolicy& policy,
                       WallTime now) {
  return Admission(nodes, policy, now).Plan();
}

}  // namespace penstock::cluster
