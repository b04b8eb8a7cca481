// Plays roll-outs on a simulated fleet with faults, where the operator starts again at every step:
// all that it knows is in the Node objects.
#include <algorithm>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/driver/fleet_upgrade.h"

namespace penstock::cluster {
namespace {

using base::WallTime;
using std::chrono::seconds;

enum class Fault {
  kNone,
  kEvictionRefused,  ///< always
  kEvictionDelayed,  ///< for some minutes
  kCrashLoop,        ///< the new driver
  kCrashAtFirst,     ///< the new driver, until its pod was replaced once
  kWedged,           ///< neither driver loads any more
  kNotValidated,     ///< with the new driver
  kGone,             ///< in the middle of it
  kNotReady,         ///< for a while, in the middle of it
  kDaemonSetPod,     ///< a pod of a DaemonSet holds a device
  kCordonedBefore,
  kFailsLater,  ///< validation, for ten minutes some time after the upgrade; not by chance
};
constexpr int kFaults = 11;

struct SimulatedPod {
  HoldingPod pod;
  bool holds = false;
  int ends_in = -1;  ///< turns; it is terminating
};

struct SimulatedNode {
  std::string name;
  Fault fault = Fault::kNone;
  NodeTexts labels, annotations;
  UpgradeRecord record;  ///< as these say
  bool cordoned = false;
  int not_ready_for = 0;
  std::optional<WallTime> not_ready_since;
  DriverPod pod;
  int pod_age = 0, pods_made = 0;
  int done_for = 0;  ///< turns with the new driver
  std::vector<SimulatedPod> pods;
  bool gone = false;
};

class Fleet {
 public:
  Fleet(unsigned seed, api::UpgradePolicy policy) : random_(seed), policy_(std::move(policy)) {
    for (int i = 0; i < 100; ++i) nodes_.push_back(MakeNode(i));
    for (int turn = 0; turn < 10; ++turn) Turn();
    wanted_ = "new";
  }

  /// Until nothing changes any more.
  void Run() {
    int quiet = 0;
    for (int turn = 0; turn < 4000 && quiet < 80; ++turn) quiet = Turn() ? 0 : quiet + 1;
    EXPECT_GE(quiet, 80) << "it comes to no end";
  }

  std::vector<SimulatedNode>& nodes() { return nodes_; }
  const FleetPlan& plan() const { return plan_; }
  static const UpgradeRecord& RecordOf(const SimulatedNode& node) { return node.record; }
  /// How often validation was found to fail after an upgrade.
  int relapses() const { return relapses_; }

 private:
  static bool FailsNow(const SimulatedNode& node) {
    return node.fault == Fault::kFailsLater && node.done_for >= 5 && node.done_for < 25;
  }

  bool Chance(int percent) { return static_cast<int>(random_() % 100) < percent; }

  SimulatedNode MakeNode(int number) {
    SimulatedNode node;
    node.record.since = now_;
    node.name = "n" + std::to_string(number);
    if (Chance(40)) node.fault = static_cast<Fault>(random_() % kFaults);
    node.cordoned = node.fault == Fault::kCordonedBefore;
    for (int i = 0; i < 3; ++i) {
      SimulatedPod& one = node.pods.emplace_back();
      one.holds = Chance(50);
      one.pod = {.name = "team/" + node.name + "-" + std::to_string(i),
                 .uid = node.name + "-" + std::to_string(i),
                 .holds = "nvidia.com/gpu"};
      one.pod.restarted = node.fault == Fault::kDaemonSetPod && i == 0;
      one.holds |= one.pod.restarted;
    }
    return node;
  }

  UpgradeNode Observed(const SimulatedNode& node) {
    UpgradeNode seen;
    seen.name = node.name;
    seen.labels = node.labels;
    seen.record = RecordOf(node);
    seen.cordoned = node.cordoned;
    seen.not_ready_since = node.not_ready_since;
    seen.pod = node.pod;
    seen.wanted = wanted_;
    seen.wanted_digest = wanted_;
    if (wanted_ == "new") seen.previous = "old";
    const bool fails =
        (node.fault == Fault::kNotValidated && node.pod.target == "new") || FailsNow(node);
    if (node.pod.ready)
      seen.validation = fails ? DriverValidation::kFailed : DriverValidation::kPassed;
    if (fails) seen.validation_text = "no device file";
    for (const SimulatedPod& one : node.pods)
      if (one.holds) seen.holding.push_back(one.pod);
    return seen;
  }

  /// One pass of the operator, then thirty seconds of the world; whether anything changed.
  bool Turn() {
    std::vector<UpgradeNode> seen;
    for (const SimulatedNode& node : nodes_)
      if (!node.gone) seen.push_back(Observed(node));
    plan_ = PlanUpgrades(seen, policy_, now_);
    CheckSoak(seen);
    bool changed = false;
    for (const UpgradeNode& node : seen) {
      const NodeStep& step = plan_.steps.at(node.name);
      if (!Changes(node, step)) continue;
      changed = true;
      Apply(Named(node.name), node, step);
    }
    Check();
    now_ += seconds(30);
    for (SimulatedNode& node : nodes_) changed |= Advance(node);
    return changed || plan_.look_again.has_value();
  }

  SimulatedNode& Named(const std::string& name) {
    return *std::ranges::find(nodes_, name, &SimulatedNode::name);
  }

  void Apply(SimulatedNode& node, const UpgradeNode& seen, const NodeStep& step) {
    for (const UpgradeAction& action : step.actions) Act(node, seen, action);
    if (Chance(10)) return;  // the operator ends here, or its write is lost
    const UpgradeMarks marks = MarksOf(step.record);
    Write(node.labels, marks.labels);
    Write(node.annotations, marks.annotations);
    node.record = ReadUpgradeRecord(node.labels, node.annotations, now_);
    EXPECT_EQ(node.record, step.record) << node.name;
    if (step.cordon) node.cordoned = *step.cordon;
  }

  static void Write(NodeTexts& texts,
                    const std::map<std::string, std::optional<std::string>>& marks) {
    for (const auto& [key, value] : marks) {
      texts.erase(key);
      if (value) texts[key] = *value;
    }
  }

  void Act(SimulatedNode& node, const UpgradeNode& seen, const UpgradeAction& action) {
    if (action.kind == UpgradeAction::Kind::kDelete) {
      EXPECT_TRUE(seen.cordoned) << node.name;
      for (const SimulatedPod& one : node.pods)
        EXPECT_FALSE(one.holds) << "the driver is unloaded below " << one.pod.name;
      node.pod.terminating = true;
      return;
    }
    const auto found = std::ranges::find(node.pods, action.uid,
                                         [](const SimulatedPod& one) { return one.pod.uid; });
    ASSERT_NE(found, node.pods.end());
    EXPECT_TRUE(found->holds) << found->pod.name << " holds no device, and is evicted";
    const bool refused = node.fault == Fault::kEvictionRefused ||
                         (node.fault == Fault::kEvictionDelayed && !Chance(10));
    if (refused) {
      found->pod.refused = "budget web allows no disruption";
    } else {
      found->pod.terminating = true;
      found->ends_in = static_cast<int>(random_() % 4);
    }
  }

  /// Where a canary has failed, none begins before it has worked for as long as it soaks.
  void CheckSoak(const std::vector<UpgradeNode>& seen) {
    for (const SimulatedNode& node : nodes_) {
      if (!FailsNow(node)) continue;
      failed_at_ = now_;
      ++relapses_;
    }
    if (!failed_at_ || now_ > *failed_at_ + policy_.canaries.soak) return;
    for (const UpgradeNode& node : seen) {
      if (node.record.state != UpgradeState::kRequired) continue;
      EXPECT_EQ(plan_.steps.at(node.name).record.state, UpgradeState::kRequired) << node.name;
    }
  }

  /// The limits hold at every moment.
  void Check() {
    std::size_t underway = 0, cordoned = 0;
    for (const SimulatedNode& node : nodes_) {
      if (node.gone) continue;
      const UpgradeRecord record = RecordOf(node);
      underway += IsUnderway(record.state) ? 1 : 0;
      const bool ours = node.cordoned && record.cordoned && record.state != UpgradeState::kFailed;
      cordoned += ours ? 1 : 0;
      if (record.state == UpgradeState::kFailed) { EXPECT_NE(record.reason, "") << node.name; }
    }
    if (policy_.max_parallel > 0) {
      EXPECT_LE(underway, static_cast<std::size_t>(policy_.max_parallel));
    }
    EXPECT_LE(cordoned, ScaledTo(policy_.max_unavailable, nodes_.size()).value_or(100));
  }

  bool Advance(SimulatedNode& node) {
    if (node.gone) return false;
    AdvanceFaults(node);
    node.done_for +=
        RecordOf(node).state == UpgradeState::kDone && node.pod.target == "new" ? 1 : 0;
    const std::size_t before = node.pods.size();
    std::erase_if(node.pods,
                  [](SimulatedPod& one) { return one.pod.terminating && one.ends_in-- <= 0; });
    return AdvanceDriver(node) || node.pods.size() != before || node.not_ready_for > 0;
  }

  void AdvanceFaults(SimulatedNode& node) {
    const bool middle = RecordOf(node).state == UpgradeState::kPodRestart;
    if (node.fault == Fault::kGone && middle && Chance(50)) node.gone = true;
    if (node.fault == Fault::kNotReady && middle && node.not_ready_for == 0) {
      node.not_ready_for = static_cast<int>(random_() % 60) + 1;
      node.not_ready_since = now_;
      node.fault = Fault::kNone;
    }
    if (node.not_ready_for > 0 && --node.not_ready_for == 0) node.not_ready_since.reset();
  }

  /// The DaemonSets' controller, the kubelet and the driver's container.
  bool AdvanceDriver(SimulatedNode& node) {
    const auto held = node.labels.find(std::string(kHeldLabel));
    const std::string made_from = held == node.labels.end() ? wanted_ : held->second;
    if (node.pod.name.empty() || node.pod.terminating ||
        (held != node.labels.end() && node.pod.target != held->second)) {
      node.pod = {.name = "driver/" + node.name + std::to_string(++node.pods_made),
                  .uid = std::to_string(node.pods_made),
                  .target = made_from,
                  .digest = made_from};
      node.pod_age = 0;
      return true;
    }
    if (node.pod.ready) return false;
    ++node.pod_age;
    if (Loads(node)) {
      node.pod.ready = node.pod_age >= 3;
      return true;
    }
    node.pod.trouble = "module nvidia is in use";
    if (node.fault == Fault::kWedged || node.pod.restarts > kMostRestarts) return false;
    ++node.pod.restarts;
    return true;
  }

  bool Loads(const SimulatedNode& node) const {
    if (node.pod.target == "old" && node.pods_made == 1) return true;
    if (node.fault == Fault::kWedged) return false;
    const bool crashes = node.fault == Fault::kCrashLoop ||
                         (node.fault == Fault::kCrashAtFirst && node.pods_made <= 2);
    return !(crashes && node.pod.target == "new");
  }

  std::mt19937 random_;
  api::UpgradePolicy policy_;
  WallTime now_ = base::NearestTime(1'800'000'000);
  std::string wanted_ = "old";
  std::vector<SimulatedNode> nodes_;
  FleetPlan plan_;
  std::optional<WallTime> failed_at_;  // a node that was upgraded, last
  int relapses_ = 0;
};

api::UpgradePolicy PolicyOfFleet() {
  api::UpgradePolicy policy;
  policy.automatic = true;
  policy.max_parallel = 10;
  policy.max_unavailable = "20%";
  policy.max_failures = "";
  policy.load_timeout = std::chrono::minutes(5);
  policy.validation_timeout = std::chrono::minutes(3);
  return policy;
}

std::string Described(const SimulatedNode& node, const UpgradeRecord& record) {
  return node.name + " with fault " + std::to_string(static_cast<int>(node.fault)) + ": " +
         std::string(NameOf(record.state)) + ", " + record.reason + ": " + record.message;
}

TEST(UpgradeSimulation, BringsEveryNodeToAnEndWithAReason) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    Fleet fleet(seed, PolicyOfFleet());
    fleet.Run();
    for (const SimulatedNode& node : fleet.nodes()) {
      if (node.gone) continue;
      const UpgradeRecord record = fleet.RecordOf(node);
      const bool done = record.state == UpgradeState::kDone && node.pod.target == "new";
      const bool failed = record.state == UpgradeState::kFailed && !record.reason.empty();
      EXPECT_TRUE(done || failed) << Described(node, record);
      switch (node.fault) {
        case Fault::kNone:
        case Fault::kCrashAtFirst:
        case Fault::kEvictionDelayed:
        case Fault::kCordonedBefore:
          // A node that was not ready for too long is tried again, and an eviction may be refused
          // until the attempts are used up.
          EXPECT_TRUE(done || record.reason == "EvictionTimedOut" ||
                      record.reason == "NodeNotReady")
              << Described(node, record);
          break;
        case Fault::kCrashLoop:
        case Fault::kNotValidated:
          EXPECT_EQ(record.reason, "RolledBack") << Described(node, record);
          EXPECT_EQ(node.pod.target, "old") << node.name;
          EXPECT_FALSE(node.cordoned) << node.name;
          break;
        case Fault::kWedged: EXPECT_TRUE(failed) << Described(node, record); break;
        default: break;
      }
      EXPECT_TRUE(node.fault != Fault::kCordonedBefore || node.cordoned) << node.name;
      EXPECT_TRUE(!done || node.fault == Fault::kCordonedBefore || !node.cordoned) << node.name;
    }
  }
}

TEST(UpgradeSimulation, StopsAtTheFirstFailuresAndSaysWhyTheOthersWait) {
  api::UpgradePolicy policy = PolicyOfFleet();
  policy.max_failures = "2";
  policy.canaries.count = "3";
  for (unsigned seed = 11; seed <= 12; ++seed) {
    Fleet fleet(seed, policy);
    for (SimulatedNode& node : fleet.nodes()) {
      node.fault = Fault::kCrashLoop;
      node.cordoned = false;
    }
    fleet.Run();
    std::size_t touched = 0;
    for (const SimulatedNode& node : fleet.nodes()) {
      const UpgradeRecord record = fleet.RecordOf(node);
      touched += record.failed_target == "new" ? 1 : 0;
      EXPECT_EQ(node.pod.target, "old") << node.name;
      EXPECT_FALSE(node.cordoned) << node.name;
      const NodeStep& step = fleet.plan().steps.at(node.name);
      EXPECT_FALSE(step.reason.empty() && record.reason.empty()) << node.name;
    }
    EXPECT_EQ(touched, 3u) << "only the canaries met the driver that crashes";
  }
}

TEST(UpgradeSimulation, HoldsTheOthersWhileACanaryFailsAndUntilItHasSoakedAgain) {
  api::UpgradePolicy policy = PolicyOfFleet();
  policy.canaries.count = "3";
  policy.canaries.soak = std::chrono::minutes(5);
  for (unsigned seed = 21; seed <= 23; ++seed) {
    Fleet fleet(seed, policy);
    std::vector<std::string> names;
    for (SimulatedNode& node : fleet.nodes()) {
      node.fault = Fault::kNone;
      node.cordoned = false;
      for (SimulatedPod& one : node.pods) one.pod.restarted = false;
      names.push_back(node.name);
    }
    std::ranges::sort(names);
    std::ranges::find(fleet.nodes(), names[1], &SimulatedNode::name)->fault = Fault::kFailsLater;
    fleet.Run();
    EXPECT_GE(fleet.relapses(), 10);
    for (const SimulatedNode& node : fleet.nodes()) {
      EXPECT_EQ(node.pod.target, "new") << Described(node, node.record);
      EXPECT_EQ(node.record.reason, "") << Described(node, node.record);
    }
  }
}

}  // namespace
}  // namespace penstock::cluster
