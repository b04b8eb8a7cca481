// Tests when what agents left on their hosts counts as taken back, against a fake API server in
// this process.
#include "operator/host_release.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/testing/manual_executor.h"
#include "protocol/kube/fake/fake_api.h"

namespace penstock::cluster {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using testing::HasSubstr;

class HostReleaseTest : public testing::Test {
 protected:
  void Begin(std::int64_t agents) {
    release_.Want(agents);
    release_.Begin({WantedObject{}});
  }
  static json Set(int desired, int ready) {
    return {{"metadata", {{"generation", 1}}},
            {"status",
             {{"observedGeneration", 1},
              {"desiredNumberScheduled", desired},
              {"updatedNumberScheduled", desired},
              {"numberReady", ready}}}};
  }
  bool Look(const json& set, bool is_refused = false, std::optional<std::int64_t> nodes = {}) {
    return release_.Look(set.is_null() ? nullptr : &set, is_refused, nodes);
  }

  base::ManualExecutor executor_;
  protocol::kube::FakeApi api_{executor_};
  std::vector<base::Duration> due_;
  HostRelease release_{api_,
                       "gpu-operator",
                       {.changed = [] {},
                        .due_after = [this](auto delay) { due_.push_back(delay); },
                        .problem = [](const auto&) {}}};
};

TEST_F(HostReleaseTest, EndsOnceAllNodesThatHadAnAgentHaveDoneIt) {
  EXPECT_FALSE(release_.wanted());
  Begin(3);
  EXPECT_FALSE(Look(nullptr));
  EXPECT_FALSE(Look(Set(2, 2))) << "a pod of the third node is not even wanted: it is not ready";
  EXPECT_EQ(release_.left(), "what agents left on the hosts of 2 of 3 nodes");
  EXPECT_FALSE(due_.empty());
  EXPECT_EQ(release_.taken_back(), "");
  EXPECT_EQ(release_.objects().size(), 1u);
  EXPECT_TRUE(Look(Set(3, 3)));
  EXPECT_TRUE(release_.over());
  EXPECT_TRUE(release_.objects().empty());
  EXPECT_EQ(release_.left(), "");
  EXPECT_EQ(release_.taken_back(), "what agents left on the hosts of 3 of 3 nodes");
  EXPECT_FALSE(release_.has_given_up());
  EXPECT_FALSE(Look(Set(3, 3))) << "it ends once";
}

TEST_F(HostReleaseTest, ANodeThatLeavesTheClusterMeanwhileIsNotWaitedFor) {
  Begin(3);
  EXPECT_FALSE(Look(Set(3, 2), false, std::nullopt)) << "the nodes are not read yet";
  EXPECT_FALSE(Look(Set(3, 2), false, 5)) << "two nodes never had an agent";
  EXPECT_FALSE(Look(Set(2, 2), false, 5)) << "it is only not wanted there";
  EXPECT_TRUE(Look(Set(2, 2), false, 4));
  EXPECT_EQ(release_.taken_back(), "what agents left on the hosts of 2 of 2 nodes");
  EXPECT_FALSE(release_.has_given_up());
  release_.Forget();
  Begin(3);
  EXPECT_FALSE(Look(Set(2, 2), false, 4)) << "the node was gone before this began";
}

TEST_F(HostReleaseTest, GivesUpAfterAMinuteAndSaysWhatToDo) {
  Begin(2);
  executor_.Advance(59s);
  EXPECT_FALSE(Look(Set(2, 1)));
  EXPECT_LE(due_.back(), 2s);
  executor_.Advance(2s);
  EXPECT_TRUE(Look(Set(2, 1)));
  EXPECT_THAT(release_.taken_back(),
              HasSubstr("1 of 2 nodes (`penstock cleanup --host --keep-state`"));
  EXPECT_TRUE(release_.has_given_up());
  release_.Forget();
  EXPECT_FALSE(release_.has_given_up());
}

TEST_F(HostReleaseTest, GivesNothingUpWhereNoNodeHadAnAgent) {
  Begin(0);
  executor_.Advance(61s);
  EXPECT_TRUE(Look(nullptr));
  EXPECT_EQ(release_.taken_back(), "what agents left on the hosts of 0 of 0 nodes");
  EXPECT_FALSE(release_.has_given_up());
}

TEST_F(HostReleaseTest, GivesUpWhereNothingIsKnownOfWhoHadAnAgent) {
  release_.Want(std::nullopt);
  release_.Begin({WantedObject{}});
  executor_.Advance(61s);
  EXPECT_TRUE(Look(nullptr));
  EXPECT_TRUE(release_.has_given_up());
  EXPECT_THAT(release_.taken_back(), HasSubstr("0 of 0 nodes (`penstock cleanup --host"));
}

TEST_F(HostReleaseTest, KnowsThatNoNodeHadAnAgentOnceItsPodsHaveRun) {
  release_.Want(std::nullopt);
  release_.Begin({WantedObject{}});
  EXPECT_TRUE(Look(Set(0, 0)));
  EXPECT_FALSE(release_.has_given_up());
}

TEST_F(HostReleaseTest, WaitsLongerWhereThereAreMorePodsToStart) {
  Begin(1000);
  executor_.Advance(2min);
  EXPECT_FALSE(Look(Set(1000, 900)));
  executor_.Advance(41s);
  EXPECT_TRUE(Look(Set(1000, 990)));
}

TEST_F(HostReleaseTest, AServerThatTakesNoPodsIsNotWaitedForButOneThatStartsIs) {
  Begin(2);
  executor_.Advance(5s);
  EXPECT_FALSE(Look(nullptr, true));
  executor_.Advance(6s);
  EXPECT_FALSE(Look(Set(2, 0), true)) << "what it refuses is another DaemonSet";
  EXPECT_FALSE(Look(nullptr, false));
  EXPECT_TRUE(Look(nullptr, true));
}

TEST_F(HostReleaseTest, WithoutObjectsThereIsNothingToDo) {
  release_.Want(1);
  release_.Begin({});
  EXPECT_TRUE(Look(nullptr));
  EXPECT_EQ(release_.taken_back(), "");
}

TEST_F(HostReleaseTest, BeginsAnewAfterAPolicyWasInForce) {
  Begin(2);
  EXPECT_TRUE(Look(Set(2, 2)));
  release_.Forget();
  EXPECT_FALSE(release_.wanted() || release_.begun() || release_.over());
  Begin(1);
  EXPECT_FALSE(Look(Set(1, 0)));
  EXPECT_EQ(release_.left(), "what agents left on the hosts of 0 of 1 nodes");
}

}  // namespace
}  // namespace penstock::cluster
