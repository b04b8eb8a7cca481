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

constexpr WallTime::duration kTroubleStands = std::chrono::minutes(1);

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

/// Whether its upgrade came to its end, and the pod is still that driver's.
bool IsUpgraded(const UpgradeNode& node) {
  return node.record.state == kDone && node.pod.target == node.wanted;
}

/// Whether the driver that it should have has worked there: one that was never upgraded is done
/// from the start.
bool HasWorked(const UpgradeNode& node) { return node.record.good == node.wanted; }

/// Whether the driver that it should have worked there after the upgrade, and does not any more.
bool HasFailedSince(const UpgradeNode& node) {
  return IsUpgraded(node) && HasWorked(node) && node.validation == DriverValidation::kFailed;
}

/// What is wrong with a node that is upgraded; empty: nothing that is known.
std::string TroubleOfUpgraded(const UpgradeNode& node) {
  if (node.not_ready_since) return "the kubelet does not report it as ready";
  if (!node.pod.ready)
    return "the driver's pod is not ready" +
           (node.pod.trouble.empty() ? "" : ": " + node.pod.trouble);
  if (node.validation == DriverValidation::kFailed)
    return "validation failed: " + node.validation_text;
  return "";
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
    plan_.counts.available = Available();
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
    CountFailures();
    if (!policy_.canaries.node_selector.empty() && canaries_.empty())
      Close("CanariesFirst", "no node has the labels of canaries.nodeSelector");
    for (const UpgradeNode* canary : canaries_) JudgeCanary(*canary);
    for (const UpgradeNode* canary : canaries_) AwaitCanary(*canary);
  }

  void CountFailures() {
    const auto most = ScaledTo(policy_.max_failures, nodes_.size());
    const auto failed = static_cast<std::size_t>(std::ranges::count_if(nodes_, HasFailed));
    std::size_t since = 0;
    std::string named;
    for (const UpgradeNode& node : nodes_)
      if (HasFailedSince(node) && since++ == 0) named = node.name + ": " + node.validation_text;
    if (!most || failed + since <= *most) return;
    std::string message = std::to_string(failed + since) + " nodes failed, and maxFailures is " +
                          policy_.max_failures;
    if (since > 0)
      message += "; " + std::to_string(since) + " of them after their upgrade, among them " + named;
    Close("TooManyFailures", std::move(message));
  }

  void JudgeCanary(const UpgradeNode& canary) {
    const std::string name = "node " + canary.name + ": ";
    if (HasFailed(canary)) return Close("CanaryFailed", name + canary.record.message);
    if (!IsUpgraded(canary) || !HasWorked(canary)) return;
    if (const std::string why = TroubleOfUpgraded(canary); !why.empty())
      Close("CanaryFailed", name + why);
  }

  void AwaitCanary(const UpgradeNode& canary) {
    const auto wait = [&](const std::string& text, const std::string& why) {
      Close("CanariesFirst", "node " + canary.name + text + (why.empty() ? "" : ": " + why));
    };
    if (!IsUpgraded(canary)) return wait(" goes first", canary.record.message);
    if (canary.validation != DriverValidation::kPassed || !TroubleOfUpgraded(canary).empty())
      return wait(" is upgraded, but not known to work", canary.validation_text);
    const WallTime began = canary.record.reason.empty() ? canary.record.since : now_;
    const WallTime soaked =
        began + std::chrono::duration_cast<WallTime::duration>(policy_.canaries.soak);
    if (now_ >= soaked) return;
    LookAt(soaked);
    wait(" is upgraded and works, but not for as long as canaries.soak", "");
  }

  /// The soak of a canary ends with the first trouble while others wait for it, and begins again
  /// when it works again. The Node says both, for an operator that starts in between. Trouble
  /// stands for a minute, so that one that comes and goes is not written each time.
  void KeepSoak(const UpgradeNode& node, NodeStep& step) {
    UpgradeRecord& record = step.record;
    if (!IsUpgraded(node) || record.state != kDone) return;
    const std::string trouble = TroubleOfUpgraded(node);
    if (trouble.empty() && node.validation == DriverValidation::kPassed) {
      if (record.reason.empty()) return;
      if (now_ < record.since + kTroubleStands) return LookAt(record.since + kTroubleStands);
      record.reason.clear();
      record.message.clear();
      record.since = now_;
    } else if (!trouble.empty() && record.reason.empty() && plan_.counts.required > 0 &&
               canary_names_.contains(node.name)) {
      record.reason = kNotWorking;
      record.message = trouble;
      record.since = now_;
    }
  }

  /// Of NVIDIA's metric nodes_upgrades_available (k8s-operator-libs: GetUpgradesAvailable).
  std::size_t Available() const {
    if (!plan_.gate.empty()) return 0;
    const UpgradeCounts& counts = plan_.counts;
    const auto left = [](std::size_t most, std::size_t taken) {
      return most > taken ? most - taken : 0;
    };
    std::size_t available =
        policy_.max_parallel == 0
            ? counts.required
            : left(static_cast<std::size_t>(policy_.max_parallel), counts.underway);
    if (const auto most = ScaledTo(policy_.max_unavailable, nodes_.size()))
      available = std::min(available, left(*most, counts.unavailable));
    return available;
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
    KeepSoak(node, step);
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
