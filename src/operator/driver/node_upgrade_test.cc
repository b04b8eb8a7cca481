// Tests each transition of one node's upgrade, by tables.
#include "operator/driver/node_upgrade.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::cluster {
namespace {

using api::UpgradePolicy;
using base::WallTime;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using enum UpgradeState;

const WallTime kNow = base::NearestTime(1'800'000'000);

UpgradePolicy Automatic() {
  UpgradePolicy policy;
  policy.automatic = true;
  return policy;
}

/// A node with the driver "old", where "new" is wanted.
UpgradeNode NodeIn(UpgradeState state, base::Duration ago = seconds(5)) {
  UpgradeNode node;
  node.name = "n1";
  node.wanted = "new";
  node.previous = "old";
  node.pod = {.name = "driver/p", .uid = "u", .target = "old", .digest = "d1", .ready = true};
  node.wanted_digest = "d2";
  node.record.state = state;
  node.record.since = kNow - std::chrono::duration_cast<WallTime::duration>(ago);
  node.record.target = "new";
  node.record.good = "old";
  if (IsUnderway(state) && state != kCordon) node.cordoned = node.record.cordoned = true;
  return node;
}

/// The same with the new driver's pod.
UpgradeNode Replaced(UpgradeState state, base::Duration ago = seconds(5)) {
  UpgradeNode node = NodeIn(state, ago);
  node.pod.target = "new";
  return node;
}

HoldingPod Pod(const std::string& name) {
  return {.name = "team/" + name, .uid = name, .holds = "nvidia.com/gpu"};
}

NodeStep StepAs(const UpgradeNode& node, const UpgradePolicy& policy = Automatic()) {
  return NextStep(node, policy, ReadinessToBegin(node, policy, kNow).begins, kNow);
}

struct TransitionCase {
  const char* name;
  UpgradeNode node;
  UpgradeState next;
  const char* reason = "";  ///< of the step, or of the record
};

UpgradeNode With(UpgradeNode node, void (*change)(UpgradeNode&)) {
  change(node);
  return node;
}

TEST(NodeUpgrade, TakesTheTransitionsOfNvidiasOperator) {
  const std::vector<TransitionCase> cases = {
      {"in sync", Replaced(kUnknown), kDone},
      {"still in sync", Replaced(kDone), kDone},
      {"no pod yet", With(NodeIn(kUnknown), [](UpgradeNode& n) { n.pod = {}; }), kUnknown},
      {"pod replaced by hand", With(NodeIn(kDone), [](UpgradeNode& n) { n.pod = {}; }), kDone},
      {"out of sync", NodeIn(kDone), kRequired},
      {"out of sync, first seen", NodeIn(kUnknown), kRequired},
      {"requested", With(Replaced(kDone), [](UpgradeNode& n) { n.record.requested = true; }),
       kRequired},
      {"waits for a safe load",
       With(Replaced(kDone), [](UpgradeNode& n) { n.record.safe_load = true; }), kRequired},
      {"admitted", NodeIn(kRequired), kCordon},
      {"in sync without an upgrade", Replaced(kRequired), kDone},
      {"left out",
       With(NodeIn(kRequired),
            [](UpgradeNode& n) { n.labels["nvidia.com/gpu-driver-upgrade.skip"] = "true"; }),
       kRequired},
      {"not ready", With(NodeIn(kRequired), [](UpgradeNode& n) { n.not_ready_since = kNow; }),
       kRequired},
      {"cordon", NodeIn(kCordon), kWaitForJobs},
      {"only a restart", With(NodeIn(kCordon), [](UpgradeNode& n) { n.wanted_digest = "d1"; }),
       kPodRestart},
      {"no jobs", NodeIn(kWaitForJobs), kPodDeletion},
      {"no pods with devices", NodeIn(kPodDeletion), kPodRestart},
      {"pods with devices",
       With(NodeIn(kPodDeletion), [](UpgradeNode& n) { n.holding = {Pod("a")}; }), kPodDeletion,
       "Evicting"},
      {"pod replaced", NodeIn(kPodRestart), kPodRestart, "DriverPodStarting"},
      {"pod ending", With(NodeIn(kPodRestart), [](UpgradeNode& n) { n.pod.terminating = true; }),
       kPodRestart, "DriverPodStarting"},
      {"loading", With(Replaced(kPodRestart), [](UpgradeNode& n) { n.pod.ready = false; }),
       kPodRestart, "DriverLoading"},
      {"loaded", Replaced(kPodRestart), kValidation},
      {"not validated", Replaced(kValidation), kValidation, "Validating"},
      {"validated",
       With(Replaced(kValidation),
            [](UpgradeNode& n) { n.validation = DriverValidation::kPassed; }),
       kUncordon},
      {"pod replaced during validation", NodeIn(kValidation), kPodRestart},
      {"uncordon", Replaced(kUncordon), kDone},
      {"no driver any more", With(NodeIn(kPodDeletion), [](UpgradeNode& n) { n.wanted = ""; }),
       kUnknown},
  };
  for (const TransitionCase& one : cases) {
    const NodeStep step = StepAs(one.node);
    EXPECT_EQ(NameOf(step.record.state), NameOf(one.next)) << one.name;
    EXPECT_EQ(step.reason, one.reason) << one.name;
    if (step.record.state != one.node.record.state) {
      EXPECT_EQ(step.record.since, one.next == kUnknown ? one.node.record.since : kNow) << one.name;
    }
  }
}

TEST(NodeUpgrade, FailsWithAReasonWhereNvidiasDoesAndWhereItWouldWaitForEver) {
  const std::vector<TransitionCase> cases = {
      {"eviction refused for too long",
       With(NodeIn(kPodDeletion, seconds(301)),
            [](UpgradeNode& n) {
              n.holding = {Pod("a")};
              n.holding[0].refused = "budget web allows none";
            }),
       kFailed, "EvictionTimedOut"},
      {"pod of a DaemonSet",
       With(NodeIn(kPodDeletion),
            [](UpgradeNode& n) {
              n.holding = {Pod("a"), Pod("b")};
              n.holding[1].restarted = true;
            }),
       kFailed, "EvictionBlocked"},
      {"crash loop",
       With(Replaced(kPodRestart),
            [](UpgradeNode& n) {
              n.pod.ready = false;
              n.pod.restarts = 11;
            }),
       kFailed, "DriverCrashLoops"},
      {"module wedged",
       With(Replaced(kPodRestart, minutes(31)),
            [](UpgradeNode& n) {
              n.pod.ready = false;
              n.pod.trouble = "nvidia is held by process 12 of pod team/a";
            }),
       kFailed, "DriverNotLoaded"},
      {"pod never comes",
       With(NodeIn(kPodRestart, minutes(31)), [](UpgradeNode& n) { n.pod = {}; }), kFailed,
       "DriverPodMissing"},
      {"not validated in time", Replaced(kValidation, minutes(10)), kFailed, "ValidationFailed"},
      {"node not ready",
       With(NodeIn(kWaitForJobs), [](UpgradeNode& n) { n.not_ready_since = kNow - minutes(10); }),
       kFailed, "NodeNotReady"},
  };
  for (const TransitionCase& one : cases) {
    const NodeStep step = StepAs(one.node);
    EXPECT_EQ(NameOf(step.record.state), NameOf(one.next)) << one.name;
    EXPECT_EQ(step.record.reason, one.reason) << one.name;
    EXPECT_EQ(step.record.attempts, 1) << one.name;
    EXPECT_EQ(step.record.failed_target, "new") << one.name;
    EXPECT_EQ(step.record.retry_at, kNow + seconds(30)) << one.name;
    EXPECT_TRUE(step.actions.empty()) << one.name;
    // The earlier driver still works where its pod was not touched.
    const bool touched = one.node.record.state >= kPodRestart;
    EXPECT_EQ(step.cordon, touched ? std::nullopt : std::optional(false)) << one.name;
    EXPECT_EQ(step.record.broken, touched) << one.name;
  }
}

TEST(NodeUpgrade, CordonsWithTheStateAndLeavesANodeCordonedThatOthersCordoned) {
  const NodeStep cordon = StepAs(NodeIn(kCordon));
  EXPECT_EQ(cordon.cordon, std::optional(true));
  EXPECT_TRUE(cordon.record.cordoned);

  UpgradeNode node = NodeIn(kRequired);
  node.cordoned = true;
  const NodeStep begun = StepAs(node);
  EXPECT_TRUE(begun.record.initially_cordoned);
  node.record = begun.record;
  node.record.state = kUncordon;
  node.pod.target = "new";
  EXPECT_EQ(StepAs(node).cordon, std::nullopt);
  EXPECT_FALSE(StepAs(node).record.initially_cordoned);

  EXPECT_EQ(StepAs(Replaced(kUncordon)).cordon, std::optional(false));
  UpgradeNode opened = NodeIn(kWaitForJobs);
  opened.cordoned = false;
  EXPECT_EQ(StepAs(opened).cordon, std::optional(true)) << "someone uncordoned it on the way";
}

TEST(NodeUpgrade, EvictsAllPodsThatHoldDevicesOrNone) {
  UpgradeNode node = NodeIn(kPodDeletion);
  node.holding = {Pod("a"), Pod("b"), Pod("c")};
  node.holding[1].terminating = true;
  node.holding[2].skipped = true;
  EXPECT_THAT(StepAs(node).actions,
              ElementsAre(UpgradeAction{UpgradeAction::Kind::kEvict, "team/a", "a"}));
  EXPECT_THAT(StepAs(node).message, HasSubstr("pod team/b (nvidia.com/gpu): is ending"));
  node.holding[0].has_empty_dir = true;
  const NodeStep blocked = StepAs(node);
  EXPECT_THAT(blocked.actions, IsEmpty());
  EXPECT_THAT(blocked.record.message, HasSubstr("deleteEmptyDir is off"));
  UpgradePolicy policy = Automatic();
  policy.pod_deletion.delete_empty_dir = true;
  EXPECT_EQ(StepAs(node, policy).actions.size(), 1u);
}

TEST(NodeUpgrade, DrainsByRulesOfItsOwnIfThePolicySaysSo) {
  UpgradePolicy policy = Automatic();
  policy.drain.enable = true;
  policy.drain.eviction.force = true;
  UpgradeNode node = NodeIn(kPodDeletion);
  node.holding = {Pod("a")};
  node.holding[0].unmanaged = true;
  node.record = StepAs(node, policy).record;
  EXPECT_EQ(node.record.state, kDrain);
  EXPECT_EQ(StepAs(node, policy).actions.size(), 1u);
  policy.drain.pod_selector = "team=other";
  EXPECT_EQ(StepAs(node, policy).record.state, kFailed);
  EXPECT_THAT(StepAs(node, policy).record.message, HasSubstr("drain.podSelector"));
}

TEST(NodeUpgrade, WaitsForJobsForAsLongAsThePolicySays) {
  UpgradePolicy policy = Automatic();
  policy.wait.pod_selector = "job";
  UpgradeNode node = NodeIn(kWaitForJobs, minutes(500));
  node.jobs = {"team/train"};
  EXPECT_EQ(StepAs(node, policy).record.state, kWaitForJobs);
  EXPECT_EQ(StepAs(node, policy).reason, "JobsRunning");
  EXPECT_EQ(StepAs(node, policy).look_again, std::nullopt);
  policy.wait.timeout = minutes(10);
  node.record.wait_started = kNow - minutes(9);
  EXPECT_EQ(StepAs(node, policy).record.state, kWaitForJobs);
  EXPECT_EQ(StepAs(node, policy).look_again, std::optional(kNow + minutes(1)));
  node.record.wait_started = kNow - minutes(10);
  EXPECT_EQ(StepAs(node, policy).record.state, kPodDeletion);
}

TEST(NodeUpgrade, TriesAgainLaterAndLaterAndThenStops) {
  UpgradePolicy policy = Automatic();
  policy.roll_back = false;
  UpgradeNode node = Replaced(kFailed);
  node.pod.ready = false;
  node.record.failed_target = "new";
  node.record.attempts = 1;
  node.record.retry_at = kNow + seconds(30);
  EXPECT_FALSE(Changes(node, StepAs(node, policy)));
  EXPECT_EQ(ReadinessToBegin(node, policy, kNow).look_again, std::optional(kNow + seconds(30)));
  node.record.retry_at = kNow;
  const NodeStep again = StepAs(node, policy);
  EXPECT_EQ(again.record.state, kCordon);
  EXPECT_TRUE(again.record.requested) << "the pod that failed is replaced";
  node.record.attempts = 3;
  EXPECT_FALSE(Changes(node, StepAs(node, policy)));
  EXPECT_THAT(ReadinessToBegin(node, policy, kNow).message, HasSubstr("it is not tried again"));
  node.record.requested = true;
  EXPECT_EQ(StepAs(node, policy).record.state, kCordon);
  EXPECT_EQ(StepAs(node, policy).record.attempts, 0);
}

TEST(NodeUpgrade, ChecksANodeThatRecoveredBeforeItIsDone) {
  UpgradeNode node = Replaced(kFailed);
  node.record.failed_target = "new";
  node.record.attempts = 9;
  node.validation = DriverValidation::kPassed;
  EXPECT_EQ(StepAs(node).record.state, kValidation);
}

TEST(NodeUpgrade, RollsBackToTheLastGoodDriverAfterTheLastAttempt) {
  UpgradeNode node = Replaced(kPodRestart);
  node.pod.ready = false;
  node.pod.restarts = 11;
  node.record.failed_target = "new";
  node.record.attempts = 2;
  const NodeStep back = StepAs(node);
  EXPECT_EQ(back.record.state, kPodRestart);
  EXPECT_EQ(back.record.held, "old");
  EXPECT_EQ(back.record.reason, "DriverCrashLoops");
  node.record = back.record;
  node.pod = {.name = "driver/q", .target = "old", .ready = true};
  node.record = StepAs(node).record;
  node.validation = DriverValidation::kPassed;
  node.record = StepAs(node).record;
  EXPECT_EQ(node.record.state, kUncordon);
  const NodeStep end = StepAs(node);
  EXPECT_EQ(end.record.state, kFailed);
  EXPECT_EQ(end.record.reason, "RolledBack");
  EXPECT_EQ(end.cordon, std::optional(false));
  EXPECT_THAT(end.record.message, HasSubstr("11 restarts"));
  // It stays so until another driver is wanted.
  node.record = end.record;
  node.cordoned = false;
  EXPECT_FALSE(Changes(node, StepAs(node)));
  node.wanted = "newer";
  const NodeStep begun = StepAs(node);
  EXPECT_EQ(begun.record.state, kCordon);
  EXPECT_EQ(begun.record.held, "old") << "until its pod is replaced";
  EXPECT_EQ(begun.record.attempts, 0);
}

TEST(NodeUpgrade, RollsBackOnlyToADriverThatWorkedOnThisNode) {
  UpgradeNode node = Replaced(kPodRestart);
  node.pod.ready = false;
  node.pod.restarts = 11;
  node.record.failed_target = "new";
  node.record.attempts = 2;
  node.record.good = "older";
  EXPECT_EQ(StepAs(node).record.state, kFailed);
  node.record.good = node.record.held = node.record.target = "old";
  node.pod.target = "old";
  const NodeStep failed = StepAs(node);
  EXPECT_EQ(failed.record.state, kFailed);
  EXPECT_EQ(failed.record.reason, "RollBackFailed");
}

TEST(NodeUpgrade, LeavesLabelsAloneWithoutAutomaticUpgrades) {
  const UpgradePolicy manual;
  EXPECT_EQ(StepAs(NodeIn(kDone), manual).record.state, kUnknown);
  EXPECT_EQ(StepAs(NodeIn(kRequired), manual).record.state, kUnknown);
  EXPECT_EQ(StepAs(NodeIn(kPodDeletion), manual).record.state, kPodRestart) << "it ends in order";
  UpgradeNode asked = NodeIn(kUnknown);
  asked.record.requested = true;
  EXPECT_EQ(StepAs(asked, manual).record.state, kRequired);
}

/// The node has the driver of another operator: the pod of ours cannot unload it while pods use it.
TEST(NodeUpgrade, EvictsPodsForAFirstDriverThatAUserAsksFor) {
  UpgradeNode node = Replaced(kDone);
  node.record.good.clear();
  node.pod.ready = false;
  node.pod.digest = node.wanted_digest;
  node.holding = {Pod("a")};
  EXPECT_FALSE(Changes(node, StepAs(node))) << "not without being asked";
  node.record.requested = true;
  for (const UpgradeState next : {kRequired, kCordon, kWaitForJobs, kPodDeletion}) {
    const NodeStep step = StepAs(node);
    EXPECT_EQ(step.record.state, next);
    node.record = step.record;
    node.cordoned = step.cordon.value_or(node.cordoned);
  }
  EXPECT_TRUE(node.cordoned);
  EXPECT_THAT(StepAs(node).actions,
              ElementsAre(UpgradeAction{UpgradeAction::Kind::kEvict, "team/a", "a"}));
  node.holding.clear();
  node.record = StepAs(node).record;
  EXPECT_EQ(node.record.state, kPodRestart);
  EXPECT_THAT(StepAs(node).actions,
              ElementsAre(UpgradeAction{UpgradeAction::Kind::kDelete, "driver/p", "u"}))
      << "which begins at once";
}

TEST(NodeUpgrade, EvictsNoPodsForAFirstDriverThatFailedWithoutBeingAskedFor) {
  UpgradeNode node = Replaced(kFailed);
  node.record.good.clear();
  node.pod.ready = false;
  node.pod.digest = node.wanted_digest;
  node.holding = {Pod("a")};
  node.record.failed_target = "new";
  node.record.attempts = 1;
  node.record.retry_at = kNow;
  for (const UpgradeState next : {kCordon, kPodRestart}) {
    node.record = StepAs(node).record;
    EXPECT_EQ(node.record.state, next);
  }
}

TEST(NodeUpgrade, OnlyRestartsAnEarlierDriverThatAUserAsksFor) {
  UpgradeNode node = Replaced(kCordon);
  node.record.requested = true;
  node.pod.digest = node.wanted_digest;
  for (const bool ready : {false, true}) {
    node.pod.ready = ready;
    EXPECT_EQ(StepAs(node).record.state, kPodRestart) << ready;
  }
  node.record.good.clear();
  EXPECT_EQ(StepAs(node).record.state, kPodRestart) << "it works";
}

TEST(NodeUpgrade, LetsADriverLoadThatWaitsForIt) {
  UpgradeNode node = Replaced(kPodRestart);
  node.pod.ready = false;
  node.record.safe_load = true;
  const NodeStep step = StepAs(node);
  EXPECT_FALSE(step.record.safe_load);
  EXPECT_TRUE(step.actions.empty());
}

TEST(UpgradeRecord, IsReadAsItWasWritten) {
  UpgradeRecord record = NodeIn(kValidation).record;
  record.reason = "ValidationFailed";
  record.failed_target = "new";
  record.held = "old";
  record.attempts = 2;
  record.broken = record.initially_cordoned = record.requested = true;
  record.retry_at = kNow + seconds(20);
  record.validation_started = kNow - seconds(5);
  NodeTexts labels, annotations;
  const UpgradeMarks marks = MarksOf(record);
  for (const auto& [key, value] : marks.labels)
    if (value) labels[key] = *value;
  for (const auto& [key, value] : marks.annotations)
    if (value) annotations[key] = *value;
  EXPECT_EQ(labels.at("nvidia.com/gpu-driver-upgrade-state"), "validation-required");
  EXPECT_EQ(ReadUpgradeRecord(labels, annotations, kNow), record);
}

TEST(UpgradeRecord, TrustsNothingThatOthersMayHaveWritten) {
  for (const char* text : {"", "{", "[]", "{\"attempts\": -1}", "{\"attempts\": 2147483647}",
                           "{\"since\": 7}", "{\"since\": \"2199-01-01T00:00:00.000Z\"}"}) {
    const UpgradeRecord record =
        ReadUpgradeRecord({{"nvidia.com/gpu-driver-upgrade-state", "no-such-state"}},
                          {{"penstock.io/driver-upgrade", text},
                           {"nvidia.com/gpu-driver-upgrade-validation-start-time", "99999999999"}},
                          kNow);
    EXPECT_EQ(record.state, kUnknown) << text;
    EXPECT_EQ(record.since, kNow) << text;
    EXPECT_EQ(record.attempts, 0) << text;
    EXPECT_EQ(record.validation_started, std::optional(kNow));
  }
  const UpgradeMarks marks = MarksOf({.since = kNow});
  for (const auto& [key, value] : marks.annotations) EXPECT_EQ(value, std::nullopt) << key;
}

}  // namespace
}  // namespace penstock::cluster
