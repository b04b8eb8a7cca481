// Plays roll-outs of drivers on nodes whose clocks are an hour ahead of the operator's, or behind:
// times of one node are compared with each other, and limits are counted by the operator's clock.
#include <array>

#include "operator/driver/upgrade_state.h"
#include "operator/testing/driver_rollout_fixture.h"

namespace penstock::cluster {
namespace {

using testing::Each;
using testing::Ne;

using Ahead = base::WallTime::duration;
constexpr char kNew[] = "nvcr.io/nvidia/driver:580.1-ubuntu22.04";
constexpr Ahead kHour = 1h;
/// Nothing takes longer than with equal clocks by more than this.
constexpr int kMoreTurns = 2;

/// The clocks of n1, n2 and n3.
class ClockSkew : public DriverRolloutTest, public testing::WithParamInterface<std::array<int, 3>> {
 protected:
  ClockSkew() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) ahead_[nodes_[i]] = GetParam()[i] * kHour;
    Run(30);
  }

  bool AreDone() {
    return std::ranges::all_of(nodes_, [this](const std::string& node) {
      return LabelOf(node, kStateKey) == "upgrade-done" && !IsCordoned(node);
    });
  }

  /// Runs until all nodes have `version`, and says how many turns of a second that took.
  int TurnsUntilDone(const std::string& version, int most) {
    PutDriver("blue", version, more_);
    Run(2, 1s);
    for (int turn = 2; turn < most; ++turn) {
      if (AreDone() && DriverStatus()["state"] == "ready") return turn;
      Run(1, 1s);
    }
    return most;
  }

  /// As if an operator had written it on a machine with the clock of this node.
  void ShiftRecord(const std::string& node) {
    const json& metadata = api_.Find(NodePath(node))->at("metadata");
    UpgradeRecord record = ReadStoredRecord(metadata.value("labels", NodeTexts()),
                                            metadata.value("annotations", NodeTexts()))
                               .record;
    if (record.since == base::WallTime{}) return;
    record.since += ahead_[node];
    for (auto* time : {&record.wait_started, &record.validation_started})
      if (*time) **time += ahead_[node];
    json annotations = json::object();
    for (const auto& [key, value] : MarksOf(record).annotations)
      if (value) annotations[key] = *value;
    api_.Merge(NodePath(node), {{"metadata", {{"annotations", annotations}}}});
  }

  json more_ = json::object();
};

TEST_P(ClockSkew, AnUpgradeTakesTheTimeThatItTakesWithEqualClocks) {
  RunPod("n1", "train", true);
  const int turns = TurnsUntilDone("580.1", 100);
  EXPECT_LE(turns, 24 + kMoreTurns);
  for (const std::string& node : nodes_) {
    EXPECT_EQ(loaded_[node].back(), kNew);
    EXPECT_EQ(loaded_[node].size(), 2u) << "loaded once";
    EXPECT_THAT(states_[node], Each(Ne("upgrade-failed")));
  }
}

// The pod finds the driver loaded: what the agent says of it counts after half a minute.
TEST_P(ClockSkew, ADriverThatStaysLoadedIsWaitedForHalfAMinute) {
  keeps_driver_ = {nodes_.begin(), nodes_.end()};
  const int turns = TurnsUntilDone("580.1", 300);
  EXPECT_GE(turns, 3 * 30) << "an earlier driver's report was taken for the new one's";
  EXPECT_LE(turns, 3 * 30 + 24 + kMoreTurns);
  for (const std::string& node : nodes_) EXPECT_THAT(states_[node], Each(Ne("upgrade-failed")));
}

TEST_P(ClockSkew, ANodeThatIsNotReadyForAWhileHasNotFailed) {
  stuck_ = {"n1"};  // in the middle of its upgrade
  PutDriver("blue", "580.1");
  Run(5, 1s);
  SetReady("n1", "False");
  Run(9 * 6, 10s);
  EXPECT_NE(LabelOf("n1", kStateKey), "upgrade-failed");
  stuck_.clear();
  SetReady("n1", "True");
  Run(60, 1s);
  EXPECT_TRUE(AreDone());
}

TEST_P(ClockSkew, ANodeThatStaysNotReadyHoldsUpTheOthersForTheLimitOnly) {
  stuck_ = {"n1"};
  PutDriver("blue", "580.1", {{"upgradePolicy", {{"autoUpgrade", true}, {"maxUnavailable", 2}}}});
  Run(5, 1s);
  SetReady("n1", "False");
  Run(11 * 6, 10s);
  EXPECT_EQ(LabelOf("n1", kStateKey), "upgrade-failed");
  SetReady("n1", "True");
  stuck_.clear();
  Run(60, 10s);
  EXPECT_TRUE(AreDone());
}

TEST_P(ClockSkew, ReadinessFollowsTheReportsWhateverTheirTimesAre) {
  const auto state = [this] { return TextAt(*api_.Find(kPolicyPath), "/status/state"); };
  const std::string before = state();
  json report = *api_.Find("/apis/penstock.io/v1alpha1/nodestates/n1");
  report["status"]["conditions"][0].update(
      {{"status", "False"}, {"reason", "NotOffered"}, {"lastTransitionTime", TimeOn("n1")}});
  api_.Put("/apis/penstock.io/v1alpha1/nodestates/n1", report);
  Run(3, 1s);
  EXPECT_EQ(state(), "notReady");
  const json nodes = api_.Find(kPolicyPath)->at("status").at("nodes");
  EXPECT_EQ(nodes.at("notReady").at(0).at("name"), "n1");
  Report("n1", "550.1");
  Run(3, 1s);
  EXPECT_EQ(state(), before);
}

// Records of an operator on another machine. A step that is under way may reach its limit early, or
// begin it again, once; a failed attempt is repeated.
TEST_P(ClockSkew, GoesOnWithTheRecordsOfAnOperatorWithAnotherClock) {
  PutDriver("blue", "580.1");
  for (int i = 0; i < 7; ++i) {
    Run(9);
    for (const std::string& node : nodes_) ShiftRecord(node);
    Start();
  }
  Run(60, 10s);
  EXPECT_TRUE(AreDone());
  for (const std::string& node : nodes_) EXPECT_EQ(loaded_[node].back(), kNew);
}

INSTANTIATE_TEST_SUITE_P(Clocks, ClockSkew,
                         testing::Values(std::array{0, 0, 0}, std::array{1, 1, 1},
                                         std::array{-1, -1, -1}, std::array{1, -1, 0}));

}  // namespace
}  // namespace penstock::cluster
