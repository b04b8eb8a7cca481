#include "adapter/cluster/node_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::adapter::cluster {
namespace {

using namespace std::chrono_literals;
using testing::IsEmpty;

class NodeLabelReconcilerTest : public testing::Test {
 protected:
  LabelPlan Decide(const NodeLabelSet& desired, bool carried = false) {
    return keeper_.Decide(node_, desired, carried, now_);
  }

  /// Decides and, if the plan says so, writes as the server would.
  bool Write(const NodeLabelSet& desired, bool carried = false) {
    const LabelPlan plan = Decide(desired, carried);
    if (!plan.write) return false;
    for (const std::string& key : node_.own)
      if (!plan.set.contains(key)) node_.labels.erase(key);
    node_.own.clear();
    for (const auto& [key, value] : plan.set) {
      node_.labels[key] = value;
      node_.own.insert(key);
      node_.others.erase(key);
    }
    keeper_.Wrote(plan.set, now_);
    return true;
  }

  void OtherSets(const std::string& key, const std::string& value) {
    node_.labels[key] = value;
    node_.own.erase(key);
    node_.others[key] = "kubectl-label";
  }

  ObservedNode node_{.labels = {{"zone", "a"}}};
  NodeLabelReconciler keeper_;
  base::TimePoint now_{1h};
};

TEST_F(NodeLabelReconcilerTest, WritesWhatDiffersOnceAndNothingAfterwards) {
  EXPECT_TRUE(Write({{"a", "1"}, {"b", "2"}}));
  EXPECT_FALSE(Write({{"a", "1"}, {"b", "2"}}));
  EXPECT_TRUE(Write({{"a", "1"}}));
  EXPECT_EQ(node_.labels, (NodeLabelSet{{"a", "1"}, {"zone", "a"}}));
}

TEST_F(NodeLabelReconcilerTest, NamesKeysLeftToNfdThatHaveOtherValues) {
  node_.nfd = {"a", "b", "gone", "feature.node.kubernetes.io/x", "x/gfd.timestamp"};
  node_.labels = {{"a", "1"}, {"b", "1"}, {"feature.node.kubernetes.io/x", "1"}, {"c", "1"}};
  node_.labels["x/gfd.timestamp"] = "1";
  NodeLabelSet desired = {{"a", "1"}, {"b", "2"}, {"feature.node.kubernetes.io/x", "2"}};
  desired.insert({{"c", "2"}, {"x/gfd.timestamp", "2"}});
  EXPECT_EQ(Decide(desired).other_values, "b");
  EXPECT_EQ(Decide(desired, true).other_values, "") << "the NodeFeature is to carry them";
}

TEST_F(NodeLabelReconcilerTest, AnAgentRestartedWritesOnlyDifferences) {
  Write({{"a", "1"}, {"gone", "x"}});
  keeper_ = {};
  EXPECT_FALSE(Decide({{"a", "1"}, {"gone", "x"}}).write);
  EXPECT_TRUE(Write({{"a", "1"}}));
  EXPECT_FALSE(node_.labels.contains("gone"));
}

TEST_F(NodeLabelReconcilerTest, ALabelThatIsRightNeedNotBeOurs) {
  node_.labels["a"] = "1";
  EXPECT_FALSE(Decide({{"a", "1"}}).write);
}

TEST_F(NodeLabelReconcilerTest, TheTimeOfAStartAloneIsNoReasonToWrite) {
  Write({{"nvidia.com/gfd.timestamp", "100"}, {"a", "1"}});
  keeper_ = {};
  EXPECT_FALSE(Write({{"nvidia.com/gfd.timestamp", "200"}, {"a", "1"}}));
  EXPECT_TRUE(Write({{"nvidia.com/gfd.timestamp", "200"}, {"a", "2"}}));
  EXPECT_EQ(node_.labels.at("nvidia.com/gfd.timestamp"), "200");
}

TEST_F(NodeLabelReconcilerTest, OthersAreNotFoughtOver) {
  Write({{"a", "1"}, {"b", "1"}});
  int writes = 0;
  for (base::Duration passed{}; passed < 24h; passed += 1s, now_ += 1s) {
    if (node_.labels["a"] == "1") OtherSets("a", "theirs");
    writes += Write({{"a", "1"}, {"b", "1"}});
  }
  EXPECT_GE(writes, 10);
  EXPECT_LE(writes, 160);  // one every ten minutes
}

TEST_F(NodeLabelReconcilerTest, NorByAnAgentThatHasJustBegun) {
  Write({{"a", "1"}});
  keeper_ = {};
  EXPECT_FALSE(Write({{"a", "1"}}));
  OtherSets("a", "theirs");
  EXPECT_FALSE(Write({{"a", "1"}}));
}

TEST_F(NodeLabelReconcilerTest, SaysWhoChangesALabelAndWhenItIsTakenBack) {
  Write({{"a", "1"}});
  OtherSets("a", "theirs");
  const LabelPlan plan = Decide({{"a", "1"}});
  EXPECT_FALSE(plan.write);
  EXPECT_EQ(plan.contested, "a (kubectl-label)");
  ASSERT_TRUE(plan.again);
  EXPECT_EQ(*plan.again, 1s);
  now_ += 1s;
  EXPECT_TRUE(Write({{"a", "1"}}));
  EXPECT_THAT(Decide({{"a", "1"}}).contested, IsEmpty());
}

TEST_F(NodeLabelReconcilerTest, ANewValueIsWrittenAtOnceWhileAnotherLabelIsContested) {
  Write({{"a", "1"}, {"b", "1"}});
  OtherSets("a", "theirs");
  EXPECT_FALSE(Write({{"a", "1"}, {"b", "1"}}));
  EXPECT_TRUE(Write({{"a", "1"}, {"b", "2"}}));
  EXPECT_EQ(node_.labels.at("b"), "2");
  EXPECT_EQ(node_.labels.at("a"), "theirs");
  EXPECT_TRUE(Write({{"a", "2"}, {"b", "2"}})) << "the desired labels changed";
}

TEST_F(NodeLabelReconcilerTest, ALabelThatWasTakenAwayComesBack) {
  Write({{"a", "1"}});
  node_.labels.erase("a");
  node_.own.erase("a");
  EXPECT_FALSE(Write({{"a", "1"}}));
  now_ += 1s;
  EXPECT_TRUE(Write({{"a", "1"}}));
}

TEST_F(NodeLabelReconcilerTest, LeavesToNfdWhatNfdKeeps) {
  node_.nfd = {"n"};
  node_.labels["n"] = "theirs";
  EXPECT_TRUE(Write({{"n", "ours"}, {"a", "1"}}));
  EXPECT_EQ(node_.labels.at("n"), "theirs");
  EXPECT_FALSE(node_.own.contains("n"));
}

// NFD finds our label with the value that it wants and does not become its manager: if we released
// the label, it would disappear from the Node.
TEST_F(NodeLabelReconcilerTest, AnNfdThatComesLaterFindsNoLabelMissing) {
  Write({{"n", "1"}, {"own", "1"}});
  node_.nfd = {"n"};
  EXPECT_FALSE(Write({{"n", "1"}, {"own", "1"}}));
  EXPECT_TRUE(Write({}));  // host features belong to NFD from now on
  EXPECT_EQ(node_.labels, (NodeLabelSet{{"n", "1"}, {"zone", "a"}}));
  OtherSets("n", "2");  // NFD changes the value
  EXPECT_FALSE(Write({}));
  EXPECT_EQ(node_.labels.at("n"), "2");
}

TEST_F(NodeLabelReconcilerTest, WhereAnObjectCarriesTheLabelsTheNodeIsLeftAlone) {
  EXPECT_FALSE(Write({{"a", "1"}}, true));
  Write({{"a", "1"}, {"b", "1"}});
  EXPECT_FALSE(Write({{"a", "2"}, {"b", "1"}}, true))
      << "no label disappears before NFD publishes it";
  EXPECT_TRUE(Write({{"a", "2"}}, true));
  EXPECT_EQ(node_.labels, (NodeLabelSet{{"a", "1"}, {"zone", "a"}}));
}

}  // namespace
}  // namespace penstock::adapter::cluster
