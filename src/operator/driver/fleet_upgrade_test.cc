// Tests which nodes of a fleet begin, and why the others wait.
#include "operator/driver/fleet_upgrade.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::cluster {
namespace {

using api::UpgradePolicy;
using base::WallTime;
using std::chrono::minutes;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::UnorderedElementsAre;
using enum UpgradeState;

const WallTime kFleetNow = base::NearestTime(1'800'000'000);

UpgradePolicy FleetPolicy() {
  UpgradePolicy policy;
  policy.automatic = true;
  policy.max_unavailable = "";
  policy.max_parallel = 2;
  return policy;
}

UpgradeNode FleetNode(int number, UpgradeState state = kRequired) {
  UpgradeNode node;
  node.name = "n" + std::to_string(number);
  node.wanted = "new";
  node.pod = {.name = "p", .target = state == kDone ? "new" : "old", .ready = true};
  node.record.state = state;
  node.record.since = kFleetNow - minutes(1);
  node.record.target = "new";
  if (state == kDone) {
    node.record.good = "new";
    node.validation = DriverValidation::kPassed;
  }
  if (IsUnderway(state)) node.cordoned = node.record.cordoned = true;
  if (state == kFailed) {
    node.record.failed_target = "new";
    node.record.attempts = 3;
    node.record.broken = node.cordoned = node.record.cordoned = true;
    node.record.message = "it crashed";
  }
  return node;
}

std::vector<UpgradeNode> Nodes(std::vector<UpgradeState> states) {
  std::vector<UpgradeNode> nodes;
  for (const UpgradeState state : states)
    nodes.push_back(FleetNode(static_cast<int>(nodes.size()) + 1, state));
  return nodes;
}

std::vector<std::string> Begun(const FleetPlan& plan, const std::vector<UpgradeNode>& nodes) {
  std::vector<std::string> begun;
  for (const UpgradeNode& node : nodes)
    if (!IsUnderway(node.record.state) && plan.steps.at(node.name).record.state == kCordon)
      begun.push_back(node.name);
  return begun;
}

std::vector<std::string> BegunOf(const std::vector<UpgradeNode>& nodes,
                                 const UpgradePolicy& policy) {
  return Begun(PlanUpgrades(nodes, policy, kFleetNow), nodes);
}

TEST(FleetUpgrade, AdmitsAsManyAsMayBeUnderway) {
  UpgradePolicy policy = FleetPolicy();
  const auto nodes = Nodes({kPodRestart, kRequired, kRequired, kDone});
  EXPECT_THAT(BegunOf(nodes, policy), ElementsAre("n2"));
  EXPECT_EQ(PlanUpgrades(nodes, policy, kFleetNow).steps.at("n3").reason, "MaxParallel");
  policy.max_parallel = 0;
  EXPECT_THAT(BegunOf(nodes, policy), ElementsAre("n2", "n3"));
}

TEST(FleetUpgrade, CountsHowManyNodesMayBegin) {
  UpgradePolicy policy = FleetPolicy();
  policy.max_parallel = 3;
  const auto nodes = Nodes({kPodRestart, kRequired, kRequired, kDone, kFailed});
  const auto available = [&] { return PlanUpgrades(nodes, policy, kFleetNow).counts.available; };
  EXPECT_EQ(available(), 2u) << "one is underway";
  policy.max_unavailable = "40%";  // of 5: 2
  EXPECT_EQ(available(), 1u);
  policy.max_unavailable = "1";
  EXPECT_EQ(available(), 0u);
  policy.max_parallel = 1;
  policy.max_unavailable = "";
  EXPECT_EQ(available(), 0u);
  policy.max_parallel = 0;
  EXPECT_EQ(available(), 2u) << "as many as wait";
  policy.paused = true;
  EXPECT_EQ(available(), 0u);
}

TEST(FleetUpgrade, GoesOnBesideANodeThatFailed) {
  UpgradePolicy policy = FleetPolicy();
  policy.max_parallel = 1;
  policy.max_unavailable = "1";
  EXPECT_THAT(BegunOf(Nodes({kFailed, kRequired, kRequired}), policy), ElementsAre("n2"));
}

TEST(FleetUpgrade, CountsNodesThatOthersCordonedOrThatAreNotReady) {
  UpgradePolicy policy = FleetPolicy();
  policy.max_parallel = 0;
  policy.max_unavailable = "50%";  // of 5, rounded up: 3
  auto nodes = Nodes({kDone, kDone, kRequired, kRequired, kRequired});
  nodes[0].cordoned = true;
  nodes[1].not_ready_since = kFleetNow;
  EXPECT_THAT(BegunOf(nodes, policy), ElementsAre("n3"));
  EXPECT_EQ(PlanUpgrades(nodes, policy, kFleetNow).steps.at("n4").reason, "MaxUnavailable");
  nodes[4].cordoned = true;
  EXPECT_THAT(BegunOf(nodes, policy), ElementsAre("n5"))
      << "it is unavailable in any case, and goes first";
  policy.max_unavailable = "0";
  EXPECT_THAT(BegunOf(nodes, policy), ElementsAre("n5"));
}

TEST(FleetUpgrade, CountsANodeThatHasBegunBeforeItIsCordoned) {
  UpgradePolicy policy = FleetPolicy();
  policy.max_parallel = 3;
  policy.max_unavailable = "1";
  auto nodes = Nodes({kCordon, kRequired, kRequired});
  nodes[0].cordoned = nodes[0].record.cordoned = false;
  EXPECT_THAT(BegunOf(nodes, policy), IsEmpty());
  EXPECT_EQ(PlanUpgrades(nodes, policy, kFleetNow).steps.at("n2").reason, "MaxUnavailable");
}

TEST(FleetUpgrade, CountsANodeUntilTheServerHasAnsweredThatItIsDone) {
  UpgradePolicy policy = FleetPolicy();
  policy.max_parallel = 1;
  for (const UpgradeState end : {kDone, kFailed}) {
    auto nodes = Nodes({end, kRequired, kRequired});
    nodes[0].cordoned = nodes[0].record.cordoned = false;
    nodes[0].is_ending = true;
    const FleetPlan plan = PlanUpgrades(nodes, policy, kFleetNow);
    EXPECT_THAT(Begun(plan, nodes), IsEmpty());
    EXPECT_EQ(plan.steps.at("n2").reason, "MaxParallel");
    EXPECT_EQ(plan.counts.underway, 1u);
    EXPECT_EQ(plan.counts.unavailable, 1u);
    EXPECT_EQ(plan.counts.done + plan.counts.failed, 0u) << "a node is counted once";
    nodes[0].is_ending = false;
    EXPECT_THAT(BegunOf(nodes, policy), ElementsAre("n2"));
  }
}

TEST(FleetUpgrade, BeginsWithTheCanariesAndWaitsUntilTheyHaveRunForAWhile) {
  UpgradePolicy policy = FleetPolicy();
  policy.max_parallel = 0;
  policy.canaries.node_selector = {{"canary", "yes"}};
  policy.canaries.soak = minutes(10);
  auto nodes = Nodes({kRequired, kRequired, kRequired});
  nodes[1].labels["canary"] = "yes";
  EXPECT_THAT(BegunOf(nodes, policy), ElementsAre("n2"));
  EXPECT_EQ(PlanUpgrades(nodes, policy, kFleetNow).steps.at("n1").reason, "CanariesFirst");
  nodes[1] = FleetNode(2, kDone);
  nodes[1].labels["canary"] = "yes";
  FleetPlan plan = PlanUpgrades(nodes, policy, kFleetNow);
  EXPECT_THAT(Begun(plan, nodes), IsEmpty());
  EXPECT_EQ(plan.look_again, std::optional(kFleetNow + minutes(9)));
  nodes[1].record.since = kFleetNow - minutes(10);
  EXPECT_THAT(BegunOf(nodes, policy), UnorderedElementsAre("n1", "n3"));
  nodes[1].labels.clear();
  EXPECT_EQ(PlanUpgrades(nodes, policy, kFleetNow).gate, "CanariesFirst") << "there is none";
}

/// A canary that is upgraded, and a node that waits for it.
struct Soak {
  UpgradePolicy policy = FleetPolicy();
  std::vector<UpgradeNode> nodes = Nodes({kDone, kRequired});
  WallTime now = kFleetNow;

  Soak() {
    policy.canaries.count = "1";
    policy.canaries.soak = minutes(10);
  }
  UpgradeNode& canary() { return nodes[0]; }

  /// What is decided then, and done: an operator that starts knows no more than the nodes say.
  FleetPlan At(minutes time) {
    now = kFleetNow + time;
    const FleetPlan plan = PlanUpgrades(nodes, policy, now);
    canary().record = plan.steps.at("n1").record;
    return plan;
  }
};

TEST(FleetUpgrade, ACanaryThatStopsWorkingClosesTheGateAndSoaksAgainOnceItWorks) {
  using Change = void (*)(UpgradeNode&);
  struct Case {
    Change breaks, heals;
    std::string why;
  };
  const Case cases[] = {
      {[](UpgradeNode& node) {
         node.validation = DriverValidation::kFailed;
         node.validation_text = "no device file";
       },
       [](UpgradeNode& node) { node.validation = DriverValidation::kPassed; },
       "validation failed: no device file"},
      {[](UpgradeNode& node) { node.not_ready_since = kFleetNow; },
       [](UpgradeNode& node) { node.not_ready_since.reset(); }, "does not report it as ready"},
      {[](UpgradeNode& node) {
         node.pod.ready = false;
         node.pod.trouble = "it crashed";
       },
       [](UpgradeNode& node) { node.pod.ready = true; }, "pod is not ready: it crashed"}};
  for (const Case& one : cases) {
    Soak soak;
    EXPECT_EQ(soak.At(minutes(5)).gate, "CanariesFirst");
    one.breaks(soak.canary());
    for (const int at : {6, 20}) {
      const FleetPlan plan = soak.At(minutes(at));
      EXPECT_EQ(plan.gate, "CanaryFailed") << one.why;
      EXPECT_THAT(plan.gate_message, AllOf(HasSubstr("node n1: "), HasSubstr(one.why)));
      EXPECT_THAT(Begun(plan, soak.nodes), IsEmpty());
      EXPECT_EQ(soak.canary().record.reason, "NotWorking");
      EXPECT_THAT(soak.canary().record.message, HasSubstr(one.why));
    }
    one.heals(soak.canary());
    FleetPlan plan = soak.At(minutes(30));
    EXPECT_EQ(plan.gate, "CanariesFirst") << "the soak begins again";
    EXPECT_EQ(plan.look_again, std::optional(kFleetNow + minutes(40)));
    EXPECT_EQ(soak.canary().record.reason, "");
    EXPECT_EQ(soak.At(minutes(39)).gate, "CanariesFirst");
    plan = soak.At(minutes(40));
    EXPECT_EQ(plan.gate, "");
    EXPECT_THAT(Begun(plan, soak.nodes), ElementsAre("n2"));
  }
}

TEST(FleetUpgrade, TroubleOfACanaryThatComesAndGoesIsWrittenTwiceAMinuteAtMost) {
  Soak soak;
  int writes = 0, opened = 0;
  const auto at = [&](int second) {
    const UpgradeRecord before = soak.canary().record;
    soak.now = kFleetNow + minutes(5) + std::chrono::seconds(second);
    const FleetPlan plan = PlanUpgrades(soak.nodes, soak.policy, soak.now);
    soak.canary().record = plan.steps.at("n1").record;
    writes += soak.canary().record == before ? 0 : 1;
    opened += plan.gate.empty() ? 1 : 0;
    return plan;
  };
  for (int second = 0; second < 600; ++second) {
    soak.canary().validation =
        second % 2 == 0 ? DriverValidation::kFailed : DriverValidation::kPassed;
    at(second);
  }
  EXPECT_LE(writes, 20);
  EXPECT_GE(writes, 2) << "it is written";
  EXPECT_EQ(opened, 0) << "it never works for as long as the soak";
  // What stands at last is not lost, and nothing else is written.
  soak.canary().validation = DriverValidation::kPassed;
  const FleetPlan plan = at(600);
  ASSERT_TRUE(plan.look_again);
  EXPECT_LE(*plan.look_again, soak.now + minutes(1));
  at(660);
  EXPECT_EQ(soak.canary().record.reason, "");
  writes = 0;
  EXPECT_EQ(at(900).gate, "CanariesFirst");
  EXPECT_EQ(at(660 + 600).gate, "");
  EXPECT_EQ(writes, 0);
}

TEST(FleetUpgrade, ACanaryOfWhichTheAgentHasNotReportedHoldsTheOthersButItsSoakGoesOn) {
  Soak soak;
  soak.canary().validation = DriverValidation::kPending;
  soak.canary().validation_text = "the node's agent has not reported yet";
  const FleetPlan plan = soak.At(minutes(10));
  EXPECT_EQ(plan.gate, "CanariesFirst");
  EXPECT_THAT(plan.gate_message, HasSubstr("has not reported yet"));
  EXPECT_EQ(soak.canary().record, FleetNode(1, kDone).record);
  soak.canary().validation = DriverValidation::kPassed;
  EXPECT_EQ(soak.At(minutes(10)).gate, "");
}

TEST(FleetUpgrade, ACanaryThatNeverHadTheDriverWorkingHasNotFailed) {
  Soak soak;
  soak.canary().record.good.clear();
  soak.canary().pod.ready = false;
  EXPECT_EQ(soak.At(minutes(10)).gate, "CanariesFirst");
}

TEST(FleetUpgrade, WritesNothingAboutACanaryForWhichNoNodeWaits) {
  Soak soak;
  soak.nodes[1] = FleetNode(2, kDone);
  soak.canary().validation = DriverValidation::kFailed;
  for (const UpgradeNode& node : soak.nodes)
    EXPECT_FALSE(
        Changes(node, PlanUpgrades(soak.nodes, soak.policy, kFleetNow).steps.at(node.name)))
        << node.name;
}

TEST(FleetUpgrade, CountsNodesThatFailValidationAfterTheirUpgrade) {
  UpgradePolicy policy = FleetPolicy();
  policy.max_failures = "1";
  auto nodes = Nodes({kDone, kDone, kFailed, kRequired});
  nodes[1].validation = DriverValidation::kFailed;
  nodes[1].validation_text = "no device file";
  const FleetPlan plan = PlanUpgrades(nodes, policy, kFleetNow);
  EXPECT_EQ(plan.gate, "TooManyFailures");
  EXPECT_THAT(plan.gate_message,
              AllOf(HasSubstr("2 nodes failed"), HasSubstr("among them n2: no device file")));
  EXPECT_THAT(Begun(plan, nodes), IsEmpty());
  nodes[1].record.good = "";
  EXPECT_EQ(PlanUpgrades(nodes, policy, kFleetNow).gate, "") << "it never worked there";
  nodes[1].record.good = "new";
  nodes[1].validation = DriverValidation::kPending;
  EXPECT_EQ(PlanUpgrades(nodes, policy, kFleetNow).gate, "") << "nothing is known";
  for (UpgradeNode& node : nodes) node.wanted = "newer";
  nodes[1].validation = DriverValidation::kFailed;
  EXPECT_EQ(PlanUpgrades(nodes, policy, kFleetNow).gate, "") << "it failed with the one before";
}

TEST(FleetUpgrade, TakesTheFirstNodesByNameAsCanariesIfThePolicyOnlyCountsThem) {
  UpgradePolicy policy = FleetPolicy();
  policy.canaries.count = "1";
  auto nodes = Nodes({kRequired, kRequired, kRequired});
  EXPECT_THAT(BegunOf(nodes, policy), ElementsAre("n1"));
  nodes[0] = FleetNode(1, kFailed);
  const FleetPlan plan = PlanUpgrades(nodes, policy, kFleetNow);
  EXPECT_THAT(Begun(plan, nodes), IsEmpty());
  EXPECT_EQ(plan.gate, "CanaryFailed");
  EXPECT_THAT(plan.gate_message, HasSubstr("node n1: it crashed"));
}

TEST(FleetUpgrade, StopsAtTheFirstFailures) {
  UpgradePolicy policy = FleetPolicy();
  policy.max_failures = "25%";  // of 4: 1
  auto nodes = Nodes({kFailed, kFailed, kRequired, kRequired});
  const FleetPlan plan = PlanUpgrades(nodes, policy, kFleetNow);
  EXPECT_EQ(plan.gate, "TooManyFailures");
  EXPECT_THAT(Begun(plan, nodes), IsEmpty());
  nodes[2].record.requested = true;
  EXPECT_THAT(BegunOf(nodes, policy), ElementsAre("n3")) << "a user asks for it";
  nodes[1].record.broken = false;
  EXPECT_EQ(PlanUpgrades(nodes, policy, kFleetNow).gate, "")
      << "where a pod could not be evicted, the driver is not to blame";
  nodes[0].record.failed_target = nodes[1].record.failed_target = "earlier";
  EXPECT_EQ(PlanUpgrades(nodes, policy, kFleetNow).gate, "") << "another driver failed there";
}

TEST(FleetUpgrade, RetriesWhileItIsStoppedSoThatItCanGoOn) {
  UpgradePolicy policy = FleetPolicy();
  policy.max_failures = "0";
  auto nodes = Nodes({kFailed, kRequired});
  nodes[0].record.attempts = 1;
  EXPECT_THAT(BegunOf(nodes, policy), ElementsAre("n1"));
}

TEST(FleetUpgrade, PausesAndResumes) {
  UpgradePolicy policy = FleetPolicy();
  policy.paused = true;
  auto nodes = Nodes({kCordon, kRequired});
  nodes[0].cordoned = false;
  const FleetPlan plan = PlanUpgrades(nodes, policy, kFleetNow);
  EXPECT_THAT(Begun(plan, nodes), IsEmpty());
  EXPECT_EQ(plan.steps.at("n2").reason, "Paused");
  EXPECT_EQ(plan.steps.at("n1").record.state, kWaitForJobs) << "what began comes to its end";
  policy.paused = false;
  EXPECT_THAT(BegunOf(nodes, policy), ElementsAre("n2"));
}

TEST(FleetUpgrade, WritesNothingWhereNothingChanges) {
  UpgradePolicy policy = FleetPolicy();
  auto nodes = Nodes({kDone, kPodRestart, kValidation, kFailed, kRequired});
  nodes[1].pod = {};
  nodes[2].pod.target = "new";
  const FleetPlan plan = PlanUpgrades(nodes, policy, kFleetNow);
  for (const UpgradeNode& node : nodes)
    EXPECT_FALSE(Changes(node, plan.steps.at(node.name))) << node.name;
}

TEST(FleetUpgrade, RoundsPercentagesUp) {
  EXPECT_EQ(ScaledTo("25%", 1), std::optional<std::size_t>(1));
  EXPECT_EQ(ScaledTo("25%", 5), std::optional<std::size_t>(2));
  EXPECT_EQ(ScaledTo("3", 100), std::optional<std::size_t>(3));
  EXPECT_EQ(ScaledTo("0%", 100), std::optional<std::size_t>(0));
  EXPECT_EQ(ScaledTo("", 100), std::nullopt);
}

}  // namespace
}  // namespace penstock::cluster
