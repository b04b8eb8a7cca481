// Tests which labels of clients are written, and when.
#include "adapter/cluster/client_labels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::adapter::cluster {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

const std::set<std::string> kAll = {"a", "b", "c"};

class ClientLabelsTest : public testing::Test {
 protected:
  /// Decides, and writes what is to be written.
  std::map<std::string, std::string> Turn(const std::set<std::string>& pause,
                                          bool answered = true) {
    const auto plan = labels_.Decide(node_, pause, now_);
    again_ = plan.again;
    labels_.Sent(plan.set);
    for (const auto& [key, value] : plan.set) node_.labels[key] = value;
    if (!plan.set.empty() && answered) labels_.Wrote(plan.set, now_);
    return plan.set;
  }

  ObservedNode node_;
  ClientLabels labels_{{{"a", "paused"}, {"b", "paused"}, {"c", "paused"}}};
  base::TimePoint now_{1h};
  std::optional<base::Duration> again_;
};

TEST_F(ClientLabelsTest, PausesWhatRunsAndPutsItBack) {
  node_.labels = {{"a", "true"}, {"b", "false"}, {"x", "true"}};
  EXPECT_THAT(Turn({}), IsEmpty());
  EXPECT_THAT(Turn(kAll), ElementsAre(Pair("a", "paused")));
  EXPECT_THAT(Turn(kAll), IsEmpty());
  EXPECT_THAT(Turn({}), ElementsAre(Pair("a", "true")));
  EXPECT_THAT(Turn({}), IsEmpty());
}

TEST_F(ClientLabelsTest, PutsBackWhatItPausedAlsoIfTheAnswerGotLost) {
  node_.labels = {{"a", "true"}};
  EXPECT_THAT(Turn(kAll, false), ElementsAre(Pair("a", "paused")));
  EXPECT_THAT(Turn(kAll), IsEmpty());
  EXPECT_THAT(Turn({}), ElementsAre(Pair("a", "true")));
}

TEST_F(ClientLabelsTest, PutsBackWhatAnEarlierAgentPaused) {
  node_.labels = {{"a", "paused"}, {"b", "false"}, {"c", "paused_and-by-another"}};
  EXPECT_THAT(Turn({}), ElementsAre(Pair("a", "true")));
  node_.labels["c"] = "paused";  // the other one has ended
  EXPECT_THAT(Turn({}), ElementsAre(Pair("c", "true")));
}

TEST_F(ClientLabelsTest, KeepsPausedWhatAnEarlierAgentPausedWhileItsChangeGoesOn) {
  node_.labels = {{"a", "paused"}};
  EXPECT_THAT(Turn(kAll), IsEmpty());
  EXPECT_THAT(Turn({}), ElementsAre(Pair("a", "true")));
}

TEST_F(ClientLabelsTest, LeavesToOthersWhatTheyPause) {
  node_.labels = {{"a", "true"}};
  Turn({});
  node_.labels["a"] = "paused";
  EXPECT_THAT(Turn({}), IsEmpty());
}

TEST_F(ClientLabelsTest, AFalseOfAUserStaysAlsoIfItIsSetMeanwhile) {
  node_.labels = {{"a", "true"}};
  Turn(kAll);
  node_.labels["a"] = "false";
  EXPECT_THAT(Turn(kAll), IsEmpty());
  EXPECT_THAT(Turn({}), IsEmpty());
  EXPECT_EQ(node_.labels["a"], "false");
}

TEST_F(ClientLabelsTest, WhatAnotherPauseKeepsForLaterIsPutBackAfterIt) {
  node_.labels = {{"a", "true"}};
  Turn(kAll);
  node_.labels["a"] = "paused_paused-for-driver-upgrade";
  EXPECT_THAT(Turn({}), IsEmpty());
  node_.labels["a"] = "paused";
  EXPECT_THAT(Turn({}), ElementsAre(Pair("a", "true")));
}

TEST_F(ClientLabelsTest, AFightOverALabelIsNotFought) {
  node_.labels = {{"a", "true"}};
  int writes = 0;
  for (int i = 0; i < 3600; ++i) {
    node_.labels["a"] = "true";
    writes += Turn(kAll).empty() ? 0 : 1;
    now_ += 1s;
  }
  EXPECT_LE(writes, 20);
  EXPECT_TRUE(again_);
}

}  // namespace
}  // namespace penstock::adapter::cluster
