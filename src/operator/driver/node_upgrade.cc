#include "operator/driver/node_upgrade.h"

#include <algorithm>

#include "api/compat/nvidia/driver_names.h"
#include "base/core/strings.h"
#include "operator/driver/evictions.h"

namespace penstock::cluster {
namespace {

using api::UpgradePolicy;
using base::WallTime;
using enum UpgradeState;

constexpr std::string_view kSkipped = "true";

bool IsOfTarget(const DriverPod& pod, const std::string& target) {
  return !pod.name.empty() && !pod.terminating && pod.target == target;
}

/// It runs the wanted driver after all.
bool HasRecovered(const UpgradeNode& node) {
  return IsOfTarget(node.pod, node.wanted) && node.pod.ready &&
         node.validation == DriverValidation::kPassed;
}

bool IsSkipped(const UpgradeNode& node) {
  const auto found = node.labels.find(std::string(api::compat::kUpgradeSkipLabel));
  return found != node.labels.end() && found->second == kSkipped;
}

Readiness Not(std::string reason, std::string message) {
  return {.reason = std::move(reason), .message = std::move(message)};
}

Readiness ReadinessToRetry(const UpgradeNode& node, const UpgradePolicy& policy, WallTime now) {
  const UpgradeRecord& record = node.record;
  if (record.failed_target != node.wanted || record.requested) return {.begins = true};
  if (HasRecovered(node)) return {.begins = true, .retry = true};
  if (!record.held.empty()) return Not(record.reason, record.message);
  if (record.attempts > policy.retries.count)
    return Not(record.reason, record.message +
                                  "; it is not tried again until the driver changes or "
                                  "the node is annotated " +
                                  std::string(api::compat::kUpgradeRequested) + "=true");
  // A time that someone else wrote holds nothing up for longer than the policy says.
  const WallTime at = std::min(
      record.retry_at, now + std::chrono::duration_cast<WallTime::duration>(policy.retries.most));
  if (now >= at) return {.begins = true, .retry = true};
  Readiness readiness =
      Not(record.reason, record.message + "; the next attempt is at " + base::FormatTime(at));
  readiness.look_again = at;
  return readiness;
}

/// Takes one step of one node.
class Stepper {
 public:
  Stepper(const UpgradeNode& node, const UpgradePolicy& policy, bool admitted, WallTime now)
      : node_(node),
        policy_(policy),
        admitted_(admitted),
        now_(now),
        step_{.record = node.record} {}

  NodeStep Take() {
    if (node_.wanted.empty()) {
      Leave();
    } else if (!WaitsForNode()) {
      TakeState();
    }
    KeepCordoned();
    return std::move(step_);
  }

 private:
  UpgradeRecord& record() { return step_.record; }

  void TakeState() {
    switch (node_.record.state) {
      case kUnknown:
      case kDone: return Idle();
      case kRequired: return Required();
      case kCordon: return Cordon();
      case kWaitForJobs: return WaitForJobs();
      case kPodDeletion: return DeletePods();
      case kDrain: return Drain();
      case kPodRestart: return RestartPod();
      case kValidation: return Validate();
      case kUncordon: return Uncordon();
      case kFailed: return Failed();
    }
  }

  void Enter(UpgradeState state) {
    if (record().state == state) return;
    record().state = state;
    record().since = now_;
    record().blocked.clear();
    record().wait_started.reset();
    record().validation_started.reset();
    if (state == kWaitForJobs) record().wait_started = now_;
    if (state == kValidation) record().validation_started = now_;
  }

  void Wait(std::string reason, std::string message) {
    step_.reason = std::move(reason);
    step_.message = std::move(message);
  }

  /// Something else is to happen first: the record says what, so that it is reported once, also
  /// where several causes take turns.
  void Block(std::string reason, std::string message) {
    std::string& said = record().blocked;
    if (const auto before = base::Split(said, ','); std::ranges::count(before, reason) == 0)
      said += (said.empty() ? "" : ",") + reason;
    Wait(std::move(reason), std::move(message));
  }

  /// Whether a limit, which begins at `start`, is reached; if not, when to look again.
  bool IsOver(WallTime start, base::Duration limit) {
    if (limit <= base::Duration(0)) return false;
    const WallTime end = start + std::chrono::duration_cast<WallTime::duration>(limit);
    if (now_ >= end) return true;
    if (!step_.look_again || *step_.look_again > end) step_.look_again = end;
    return false;
  }

  /// From the cordon to the end, whoever uncordons it.
  void KeepCordoned() {
    const UpgradeState state = record().state;
    if (state < kWaitForJobs || state > kValidation || node_.cordoned) return;
    step_.cordon = true;
    record().cordoned = true;
  }

  /// A node that others cordoned stays so.
  void UncordonIfOurs() {
    if (record().cordoned && node_.cordoned) step_.cordon = false;
    record().cordoned = record().initially_cordoned = false;
  }

  /// The node shall have no driver of ours.
  void Leave() {
    UncordonIfOurs();
    record() = {.since = record().since};
  }

  bool WaitsForNode() {
    if (!IsUnderway(node_.record.state) || !node_.not_ready_since) return false;
    const std::string message = "the kubelet does not report the node as ready";
    if (IsOver(std::min(*node_.not_ready_since, now_), kNotReadyLimit)) {
      Fail("NodeNotReady", message, false);
    } else {
      Block("NodeNotReady", message);
    }
    return true;
  }

  bool IsOf(const std::string& target) const { return IsOfTarget(node_.pod, target); }

  bool IsAsked() const { return node_.record.requested || node_.record.safe_load; }

  void Idle() {
    record().held.clear();  // whoever wrote it: only a node that failed has an earlier driver
    if (HasRecovered(node_)) record().good = node_.wanted;
    if (!policy_.automatic && !node_.record.requested) return NotAutomatic();
    const bool absent = node_.pod.name.empty() || node_.pod.terminating;
    if (IsOf(node_.wanted) && !IsAsked()) {
      Enter(kDone);
    } else if (!absent || IsAsked()) {
      Enter(kRequired);
      record().target = node_.wanted;
      record().reason.clear();  // of the driver before
      record().message.clear();
    }
  }

  /// Without automatic upgrades no node has a state, and no driver waits for one.
  void NotAutomatic() {
    Enter(kUnknown);
    record().safe_load = false;
  }

  void Required() {
    if (!policy_.automatic && !node_.record.requested) return NotAutomatic();
    record().target = node_.wanted;
    if (IsOf(node_.wanted) && !IsAsked()) return Enter(kDone);
    if (admitted_) Begin();
  }

  void Begin() {
    if (record().failed_target != node_.wanted) {
      record().failed_target.clear();
      record().attempts = 0;
      record().broken = false;
    }
    record().target = node_.wanted;
    record().reason.clear();
    record().message.clear();
    record().initially_cordoned = node_.cordoned && !record().cordoned;
    Enter(kCordon);
  }

  /// Users may ask for the first driver of a node where that of another operator is in use. An
  /// attempt after one that failed is requested by Failed(), too, without a user.
  bool IsFirstAskedFor() const {
    return node_.record.requested && node_.record.attempts == 0 && node_.record.good.empty() &&
           !node_.pod.ready;
  }

  /// A pod that installs the same need not be upgraded, only replaced.
  bool OnlyRestarts() const {
    return node_.record.held.empty() && !node_.record.safe_load && !IsFirstAskedFor() &&
           !node_.pod.digest.empty() && node_.pod.digest == node_.wanted_digest;
  }

  void Cordon() {
    if (OnlyRestarts()) return EnterRestart();
    Enter(kWaitForJobs);
  }

  void WaitForJobs() {
    const WallTime started = node_.record.wait_started.value_or(node_.record.since);
    if (policy_.wait.pod_selector.empty() || node_.jobs.empty() ||
        IsOver(started, policy_.wait.timeout))
      return Enter(kPodDeletion);
    Block("JobsRunning", std::to_string(node_.jobs.size()) + " pods, among them " +
                             node_.jobs.front() + ", are to end first");
  }

  void EnterRestart() {
    record().held.clear();
    record().target = node_.wanted;
    Enter(kPodRestart);
  }

  void DeletePods() {
    Evict(policy_.pod_deletion, "", [&](const std::string& reason, const std::string& message) {
      if (policy_.drain.enable) {
        Wait(reason, message);
        Enter(kDrain);
      } else {
        Fail(reason, message, false);
      }
    });
  }

  void Drain() {
    Evict(policy_.drain.eviction, policy_.drain.pod_selector,
          [&](const std::string& reason, const std::string& message) {
            Fail(reason, message, false);
          });
  }

  template <typename GiveUp>
  void Evict(const api::UpgradeEviction& rules, const std::string& selector, GiveUp give_up) {
    Evictions evictions = EvictionsOf(node_.holding, rules, selector);
    if (evictions.Done()) return EnterRestart();
    if (!evictions.blocked.empty()) return give_up("EvictionBlocked", evictions.blocked);
    if (IsOver(node_.record.since, rules.timeout))
      return give_up("EvictionTimedOut", evictions.waiting);
    if (evictions.refused) {
      Block("Evicting", evictions.waiting);
    } else {
      Wait("Evicting", evictions.waiting);
    }
    step_.actions = std::move(evictions.actions);
  }

  /// A change of the wanted driver applies to a node that is not yet done.
  void FollowWanted() {
    if (record().held.empty()) record().target = node_.wanted;
  }

  void RestartPod() {
    FollowWanted();
    if (node_.record.safe_load) {
      record().safe_load = false;
      return Wait("DriverLoading", "the driver's pod may load the driver now");
    }
    const DriverPod& pod = node_.pod;
    if (pod.name.empty() || pod.terminating) {
      if (IsOver(node_.record.since, policy_.load_timeout))
        return Fail("DriverPodMissing", "the driver's pod was not replaced", true);
      return Wait("DriverPodStarting", pod.terminating ? "the driver's pod is ending"
                                                       : "the driver's pod is not there yet");
    }
    if (node_.record.requested || !IsOf(record().target)) {
      record().requested = false;
      step_.actions.push_back({UpgradeAction::Kind::kDelete, pod.name, pod.uid});
      return Wait("DriverPodStarting", "the driver's pod is replaced");
    }
    if (pod.ready) return Enter(kValidation);
    AwaitDriver();
  }

  void AwaitDriver() {
    const DriverPod& pod = node_.pod;
    if (pod.restarts > kMostRestarts)
      return Fail("DriverCrashLoops", std::to_string(pod.restarts) + " restarts: " + pod.trouble,
                  true);
    if (IsOver(node_.record.since, policy_.load_timeout))
      return Fail("DriverNotLoaded", pod.trouble, true);
    if (pod.trouble.empty()) return Wait("DriverLoading", "");
    Block("DriverLoading", pod.trouble);
  }

  void Validate() {
    FollowWanted();
    if (!IsOf(record().target)) return Enter(kPodRestart);
    if (node_.pod.ready && node_.validation == DriverValidation::kPassed) return Enter(kUncordon);
    if (!node_.pod.ready && node_.pod.restarts > kMostRestarts) return AwaitDriver();
    if (IsOver(node_.record.validation_started.value_or(node_.record.since),
               policy_.validation_timeout))
      return Fail("ValidationFailed", node_.validation_text, true);
    Wait("Validating", node_.validation_text);
  }

  void Uncordon() {
    const bool rolled_back = !record().held.empty();
    if (!rolled_back) {
      record().good = record().target;
      record().failed_target.clear();
      record().reason.clear();
      record().message.clear();
      record().attempts = 0;
      record().broken = false;
    } else {
      record().reason = kRolledBack;
    }
    UncordonIfOurs();
    Enter(rolled_back ? kFailed : kDone);
  }

  void Failed() {
    if (!admitted_) return;
    const bool recovered = HasRecovered(node_);
    if (node_.record.requested) record().failed_target.clear();
    const std::string reason = record().reason, message = record().message;
    Begin();
    if (record().attempts > 0) {
      record().reason = reason;
      record().message = message;
    }
    if (recovered) return Enter(kValidation);
    // The pod that failed is replaced.
    if (IsOf(node_.wanted)) record().requested = true;
  }

  /// The driver of a node that did not come as far as kPodRestart is still its earlier one.
  void Fail(std::string reason, std::string message, bool may_roll_back) {
    UpgradeRecord& failed = record();
    const bool rolling_back = !failed.held.empty() && failed.target == failed.held;
    failed.message = std::move(message);
    failed.reason = rolling_back ? "RollBackFailed" : std::move(reason);
    if (failed.failed_target != node_.wanted) failed.attempts = 0;
    failed.broken = failed.attempts > 0 && failed.broken;
    failed.broken |= node_.record.state >= kPodRestart;
    failed.requested = false;
    failed.failed_target = node_.wanted;
    failed.attempts = rolling_back ? policy_.retries.count + 1 : failed.attempts + 1;
    if (may_roll_back && !rolling_back && CanRollBack()) return RollBack();
    failed.retry_at = now_ + std::chrono::duration_cast<WallTime::duration>(BackOff());
    if (node_.record.state < kPodRestart) UncordonIfOurs();
    Enter(kFailed);
  }

  bool CanRollBack() {
    return policy_.roll_back && record().attempts > policy_.retries.count &&
           !node_.previous.empty() && node_.previous != node_.wanted &&
           node_.previous == record().good;
  }

  void RollBack() {
    record().held = node_.previous;
    record().target = node_.previous;
    record().state = kUnknown;  // a limit of the same state begins again
    Enter(kPodRestart);
    Wait("RollingBack", record().message);
  }

  base::Duration BackOff() {
    base::Duration wait = policy_.retries.first;
    for (int i = 1; i < record().attempts && wait < policy_.retries.most; ++i) wait *= 2;
    return std::min(wait, policy_.retries.most);
  }

  const UpgradeNode& node_;
  const UpgradePolicy& policy_;
  const bool admitted_;
  const WallTime now_;
  NodeStep step_;
};

}  // namespace

bool Changes(const UpgradeNode& node, const NodeStep& step) {
  return !(step.record == node.record) || step.cordon || !step.actions.empty();
}

Readiness ReadinessToBegin(const UpgradeNode& node, const UpgradePolicy& policy, WallTime now) {
  const UpgradeRecord& record = node.record;
  const bool waits = record.state == kRequired || record.state == kFailed;
  if (node.wanted.empty() || !waits) return {};
  if (!policy.automatic && !record.requested)
    return Not(record.reason, "upgrades are not automatic");
  if (IsSkipped(node))
    return Not("Skipped", "the node is labelled " + std::string(api::compat::kUpgradeSkipLabel));
  if (node.not_ready_since) return Not("NodeNotReady", "the kubelet does not report it as ready");
  if (record.state == kFailed) return ReadinessToRetry(node, policy, now);
  const bool asked = record.requested || record.safe_load;
  return {.begins = asked || !IsOfTarget(node.pod, node.wanted)};
}

NodeStep NextStep(const UpgradeNode& node, const UpgradePolicy& policy, bool admitted,
                  WallTime now) {
  return Stepper(node, policy, admitted, now).Take();
}

}  // namespace penstock::cluster
