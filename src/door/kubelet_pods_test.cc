#include "door/kubelet_pods.h"

#include <condition_variable>
#include <future>
#include <mutex>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "edge/kubelet/fake/fake_kubelet.h"
#include "os/temporary_folder.h"

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
              ElementsAre(PodHolding{"uid-1", "train", "ml", "main", {"G0", "G1"}, kGpu}));
}

TEST(JoinPods, TakesTheLivingPodsUidWhereADeletedOneLingers) {
  const std::vector<CheckpointEntry> checkpoint = {{"old", "main", kGpu, {"G0"}}, {"new", "main", kGpu, {"G0"}}};
  EXPECT_EQ(JoinPods({{"ml", "train", "main", kGpu, {"G0"}}}, checkpoint, {"new"}).at(0).pod_uid, "new");
  EXPECT_EQ(JoinPods({{"ml", "train", "main", kGpu, {"G0"}}}, checkpoint, {}).at(0).pod_uid, "");
}

TEST(JoinPods, KnowsInitContainersFromTheCheckpointAndForgetsEndedPods) {
  const std::vector<CheckpointEntry> checkpoint = {{"uid-1", "prepare", kGpu, {"G3"}}};
  EXPECT_THAT(JoinPods({}, checkpoint, {"uid-1"}), ElementsAre(PodHolding{"uid-1", "", "", "prepare", {"G3"}, kGpu}));
  EXPECT_THAT(JoinPods({}, checkpoint, {}), IsEmpty());
}

TEST(JoinPods, BelievesTheListWhereBothNameADevice) {
  const auto pods = JoinPods({{"ml", "new", "main", kGpu, {"G0"}}}, {{"uid-old", "other", kGpu, {"G0"}}}, {"uid-old"});
  ASSERT_EQ(pods.size(), 1u);
  EXPECT_EQ(pods[0].pod, "new");
}

/// Counts looks: each asks once whether the resource of the kubelet's only pod is ours.
class KubeletPodsTest : public testing::Test {
 protected:
  KubeletPodsTest() {
    kubelet_.SetPods({{"ml", "train", "main", "other.com/gpu", {"G0"}}});
    kubelet_.Start();
    control_.Start();
    io_.Start();
    On(control_, [this] {
      pods_ = std::make_unique<KubeletPods>(control_, io_, kubelet_.kubelet_dir(), "/proc", ledger_, offers_,
                                            [this](const std::string&, const std::vector<std::string>&) {
                                              std::lock_guard lock(mutex_);
                                              ++looks_;
                                              changed_.notify_all();
                                              return false;
                                            });
    });
  }
  ~KubeletPodsTest() override {
    On(control_, [this] { pods_.reset(); });
    control_.Stop();
    io_.Stop();
  }

  template <typename Function>
  static void On(os::Loop& loop, Function function) {
    std::promise<void> done;
    loop.Post([&] {
      function();
      done.set_value();
    });
    done.get_future().wait();
  }

  /// Waits until there were so many looks, and the last of them has ended.
  bool WaitForLooks(int count) {
    {
      std::unique_lock lock(mutex_);
      if (!changed_.wait_for(lock, std::chrono::seconds(10), [&] { return looks_ >= count; })) return false;
    }
    for (os::Loop* loop : {&control_, &io_, &control_}) On(*loop, [] {});
    return true;
  }

  int looks() {
    std::lock_guard lock(mutex_);
    return looks_;
  }

  os::TemporaryFolder folder_;
  edge::kubelet::FakeKubelet kubelet_{folder_.path()};
  os::Loop control_{"control"}, io_{"io"};
  node::ledger::Ledger ledger_;
  base::Published<std::vector<node::share::Offer>> offers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int looks_ = 0;
  std::unique_ptr<KubeletPods> pods_;
};

TEST_F(KubeletPodsTest, ManyCallsForALookSoonMakeOne) {
  constexpr int kRounds = 3;
  for (int round = 1; round <= kRounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < 100; ++i) On(control_, [this] { pods_->LookSoon(); });
    ASSERT_TRUE(WaitForLooks(round));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(150)) << "the kubelet has to have our answer first";
  }
  On(control_, [this] { pods_->Look(); });
  ASSERT_TRUE(WaitForLooks(kRounds + 1));
  EXPECT_EQ(looks(), kRounds + 1);
}

TEST_F(KubeletPodsTest, ALookAtOnceServesThoseWhoWaitForOneSoon) {
  On(control_, [this] {
    pods_->LookSoon();
    pods_->Look();
  });
  ASSERT_TRUE(WaitForLooks(1));
  On(control_, [this] { pods_->LookSoon(); });
  ASSERT_TRUE(WaitForLooks(2));
  EXPECT_EQ(looks(), 2);
}

}  // namespace
}  // namespace penstock::door
