#include "door/kubelet_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::door {
namespace {

using edge::kubelet::CheckpointEntry;
using edge::kubelet::PodDevices;
using node::attribute::PodHolding;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const char kGpu[] = "nvidia.com/gpu";

TEST(JoinPods, AddsTheUidToTheNames) {
  EXPECT_THAT(JoinPods({{"ml", "train", "main", kGpu, {"G0", "G1"}}}, {{"uid-1", "main", kGpu, {"G0", "G1"}}}, {}),
              ElementsAre(PodHolding{"uid-1", "train", "ml", "main", {"G0", "G1"}}));
}

TEST(JoinPods, TakesTheLivingPodsUidWhereADeletedOneLingers) {
  const std::vector<CheckpointEntry> checkpoint = {{"old", "main", kGpu, {"G0"}}, {"new", "main", kGpu, {"G0"}}};
  EXPECT_EQ(JoinPods({{"ml", "train", "main", kGpu, {"G0"}}}, checkpoint, {"new"}).at(0).pod_uid, "new");
  EXPECT_EQ(JoinPods({{"ml", "train", "main", kGpu, {"G0"}}}, checkpoint, {}).at(0).pod_uid, "");
}

TEST(JoinPods, KnowsInitContainersFromTheCheckpointAndForgetsEndedPods) {
  const std::vector<CheckpointEntry> checkpoint = {{"uid-1", "prepare", kGpu, {"G3"}}};
  EXPECT_THAT(JoinPods({}, checkpoint, {"uid-1"}), ElementsAre(PodHolding{"uid-1", "", "", "prepare", {"G3"}}));
  EXPECT_THAT(JoinPods({}, checkpoint, {}), IsEmpty());
}

TEST(JoinPods, BelievesTheListWhereBothNameADevice) {
  const auto pods = JoinPods({{"ml", "new", "main", kGpu, {"G0"}}}, {{"uid-old", "other", kGpu, {"G0"}}}, {"uid-old"});
  ASSERT_EQ(pods.size(), 1u);
  EXPECT_EQ(pods[0].pod, "new");
}

}  // namespace
}  // namespace penstock::door
