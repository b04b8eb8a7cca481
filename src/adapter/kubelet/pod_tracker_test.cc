#include "adapter/kubelet/pod_tracker.h"

#include <atomic>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"
#include "os/testing/temporary_folder.h"
#include "os/testing/turned_loop.h"
#include "protocol/kubelet/fake/fake_kubelet.h"

namespace penstock::adapter::kubelet {
namespace {

using node::attribute::PodHolding;
using protocol::kubelet::CheckpointEntry;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

const char kGpu[] = "nvidia.com/gpu";

TEST(JoinPods, AddsTheUidToTheNames) {
  EXPECT_THAT(JoinPods({{"ml", "train", "main", kGpu, {"G0", "G1"}}},
                       {{"uid-1", "main", kGpu, {"G0", "G1"}}}, {}),
              ElementsAre(PodHolding{"uid-1", "train", "ml", "main", {"G0", "G1"}, kGpu}));
}

TEST(JoinPods, TakesTheLivingPodsUidWhereADeletedOneLingers) {
  const std::vector<CheckpointEntry> checkpoint = {{"old", "main", kGpu, {"G0"}},
                                                   {"new", "main", kGpu, {"G0"}}};
  EXPECT_EQ(JoinPods({{"ml", "train", "main", kGpu, {"G0"}}}, checkpoint, {"new"}).at(0).pod_uid,
            "new");
  EXPECT_EQ(JoinPods({{"ml", "train", "main", kGpu, {"G0"}}}, checkpoint, {}).at(0).pod_uid, "");
}

TEST(JoinPods, KnowsInitContainersFromTheCheckpointAndForgetsEndedPods) {
  const std::vector<CheckpointEntry> checkpoint = {{"uid-1", "prepare", kGpu, {"G3"}}};
  EXPECT_THAT(JoinPods({}, checkpoint, {"uid-1"}),
              ElementsAre(PodHolding{"uid-1", "", "", "prepare", {"G3"}, kGpu}));
  EXPECT_THAT(JoinPods({}, checkpoint, {}), IsEmpty());
}

TEST(JoinPods, WhatOnlyAnInitContainerHadIsStillItsPods) {
  EXPECT_THAT(JoinPods({{"ml", "train", "main", kGpu, {"G0"}}},
                       {{"uid-1", "prepare", kGpu, {"G0", "G1"}}, {"uid-1", "main", kGpu, {"G0"}}},
                       {"uid-1"}),
              ElementsAre(PodHolding{"uid-1", "train", "ml", "main", {"G0"}, kGpu},
                          PodHolding{"uid-1", "train", "ml", "prepare", {"G1"}, kGpu}));
}

TEST(JoinPods, TheOrderOfTheCheckpointDecidesNothing) {
  const CheckpointEntry prepare = {"uid-1", "prepare", kGpu, {"G0", "G1"}},
                        main = {"uid-1", "main", kGpu, {"G0"}};
  const auto joined = JoinPods({}, {prepare, main}, {"uid-1"});
  EXPECT_EQ(joined, JoinPods({}, {main, prepare}, {"uid-1"}));
  EXPECT_THAT(joined, ElementsAre(PodHolding{"uid-1", "", "", "main", {"G0"}, kGpu},
                                  PodHolding{"uid-1", "", "", "prepare", {"G1"}, kGpu}));
}

TEST(JoinPods, BelievesTheListWhereBothNameADevice) {
  const auto pods = JoinPods({{"ml", "new", "main", kGpu, {"G0"}}},
                             {{"uid-old", "other", kGpu, {"G0"}}}, {"uid-old"});
  ASSERT_EQ(pods.size(), 1u);
  EXPECT_EQ(pods[0].pod, "new");
}

/// Counts looks under a stopped clock: each look asks once whether the resource of the kubelet's
/// only pod is ours.
class KubeletPodsTest : public testing::Test {
 protected:
  KubeletPodsTest() {
    kubelet_.SetPods({{"ml", "train", "main", "other.com/gpu", {"G0"}}});
    kubelet_.Start();
    control_.Start();
    io_.Start();
    control_.Run([this] {
      pods_ = std::make_unique<PodTracker>(
          control_.loop(), io_, kubelet_.kubelet_dir(), "/proc", ledger_, offers_,
          [this](const std::string&, const std::vector<std::string>&) {
            ++looks_;
            return false;
          });
    });
  }
  ~KubeletPodsTest() override {
    control_.Run([this] { pods_.reset(); });
    control_.Stop();
    io_.Stop();
  }

  /// Waits until there were this many looks and the last one has ended; no time passes.
  bool WaitForLooks(int count) {
    if (!control_.AdvanceUntil({}, [&] { return looks_ >= count; })) return false;
    std::promise<void> read;
    io_.Post([&] { read.set_value(); });
    read.get_future().wait();
    control_.Settle();
    return looks_ == count;
  }

  os::TemporaryFolder folder_;
  protocol::kubelet::FakeKubelet kubelet_{folder_.path()};
  os::TurnedLoop control_{"control"};
  os::Loop io_{"io"};
  node::ledger::Ledger ledger_;
  node::inventory::Inventory inventory_;
  node::share::Offers offers_{inventory_, ledger_, device::testing::FindAcme, {"kubelet"}};
  std::atomic<int> looks_ = 0;
  std::unique_ptr<PodTracker> pods_;
};

TEST_F(KubeletPodsTest, ManyCallsForALookSoonMakeOne) {
  constexpr int kRounds = 3;
  for (int round = 1; round <= kRounds; ++round) {
    for (int i = 0; i < 100; ++i) control_.Run([this] { pods_->SchedulePoll(); });
    control_.Advance(149ms);
    EXPECT_EQ(looks_, round - 1) << "the kubelet must receive the agent's answer first";
    control_.Advance(1ms);
    ASSERT_TRUE(WaitForLooks(round));
  }
  control_.Run([this] { pods_->Poll(); });
  EXPECT_TRUE(WaitForLooks(kRounds + 1));
}

TEST_F(KubeletPodsTest, ALookAtOnceServesThoseWhoWaitForOneSoon) {
  control_.Run([this] {
    pods_->SchedulePoll();
    pods_->Poll();
  });
  ASSERT_TRUE(WaitForLooks(1));
  control_.Advance(9s);
  EXPECT_EQ(looks_, 1);
  control_.Run([this] { pods_->SchedulePoll(); });
  control_.Advance(150ms);
  EXPECT_TRUE(WaitForLooks(2));
}

TEST_F(KubeletPodsTest, LooksEverySecondWhileSomeoneWaitsForPodsToEnd) {
  control_.Run([this] { pods_->AwaitReleases(true); });
  for (int looks = 1; looks <= 5; ++looks) {
    ASSERT_TRUE(WaitForLooks(looks));
    control_.Advance(999ms);
    EXPECT_EQ(looks_, looks);
    control_.Advance(1ms);
  }
  ASSERT_TRUE(WaitForLooks(6));
  control_.Run([this] { pods_->AwaitReleases(false); });
  // One look may already be due; after it they are ten seconds apart.
  for (int second = 0; second < 30; ++second) control_.Advance(1s);
  EXPECT_LE(looks_, 6 + 1 + 3);
  EXPECT_TRUE(control_.AdvanceUntil(1s, [this] { return looks_ > 6; }));
}

}  // namespace
}  // namespace penstock::adapter::kubelet
