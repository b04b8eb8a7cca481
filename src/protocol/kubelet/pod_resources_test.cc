#include "protocol/kubelet/pod_resources.h"

#include <atomic>
#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/core/testing/must.h"
#include "os/testing/temporary_folder.h"
#include "protocol/kubelet/fake/fake_kubelet.h"
#include "protocol/kubelet/testing/plugin_fixture.h"

namespace penstock::protocol::kubelet {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using testing::ElementsAre;
using testing::Pair;

class PodResourcesTest : public testing::Test {
 protected:
  ~PodResourcesTest() override { loop_.Stop(); }

  /// Asks on the loop and waits for the answer.
  base::Result<std::vector<PodDevices>> List() { return List(client_); }
  base::Result<std::vector<PodDevices>> List(PodResources& client) {
    std::promise<base::Result<std::vector<PodDevices>>> answer;
    loop_.Post([&] { client.List([&](auto result) { answer.set_value(std::move(result)); }); });
    return answer.get_future().get();
  }

  using Allocatable = std::map<std::string, std::vector<std::string>>;
  base::Result<Allocatable> GetAllocatable() {
    std::promise<base::Result<Allocatable>> answer;
    loop_.Post(
        [&] { client_.GetAllocatable([&](auto result) { answer.set_value(std::move(result)); }); });
    return answer.get_future().get();
  }

  os::TemporaryFolder folder_;
  FakeKubelet kubelet_{folder_ / "kubelet"};
  os::Loop loop_{"test"};
  PodResources client_{loop_, folder_ / "kubelet", minutes(1)};
  PodResources hasty_{loop_, folder_ / "kubelet", milliseconds(100)};  // for answers that never
                                                                       // come
};

TEST_F(PodResourcesTest, FoldsTheKubeletsEntriesByContainerAndResource) {
  kubelet_.Start();
  kubelet_.SetPods({{"research", "train-0", "main", kGpu, {"GPU-b", "GPU-a"}},
                    {"default", "serve", "web", "rdma/hca", {"mlx5_0"}}});
  loop_.Start();
  const auto list = Must(List());
  EXPECT_THAT(list,
              ElementsAre(PodDevices{"default", "serve", "web", "rdma/hca", {"mlx5_0"}},
                          PodDevices{"research", "train-0", "main", kGpu, {"GPU-a", "GPU-b"}}));
}

TEST_F(PodResourcesTest, ReadsAnAnswerOfManyMegabytes) {
  kubelet_.Start();
  std::vector<FakePod> pods;
  for (int i = 0; i < 100; ++i)
    pods.push_back({"default", "pod-" + std::to_string(i), "c", kGpu,
                    std::vector<std::string>(700, std::string(60, 'x'))});
  kubelet_.SetPods(pods);
  loop_.Start();
  const auto list = Must(List());
  EXPECT_EQ(list.size(), 100u);
}

TEST_F(PodResourcesTest, ReportsWhatTheKubeletCountsAndFindsItAgainAfterARestart) {
  RunningPlugin plugin(folder_ / "kubelet");
  kubelet_.Start();
  plugin.Start({{"GPU-b", true, {}}, {"GPU-a", true, {}}, {"GPU-c", false, {}}});
  loop_.Start();
  for (int restart = 0; restart < 3; ++restart) {
    ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
    const auto allocatable = Must(GetAllocatable());
    EXPECT_THAT(allocatable, ElementsAre(Pair(kGpu, ElementsAre("GPU-a", "GPU-b"))));
    kubelet_.Restart();
  }
}

TEST_F(PodResourcesTest, SaysThatThereIsNoKubelet) {
  loop_.Start();
  EXPECT_EQ(List().error().code(), base::Code::kUnavailable);
  kubelet_.Start();
  EXPECT_TRUE(List().ok());
  kubelet_.Kill();
  EXPECT_EQ(List().error().code(), base::Code::kUnavailable);
}

TEST_F(PodResourcesTest, GivesASlowKubeletUp) {
  kubelet_.Start();
  kubelet_.SetPodResourcesDelay(minutes(10));
  loop_.Start();
  EXPECT_EQ(List(hasty_).error().code(), base::Code::kDeadlineExceeded);
}

TEST_F(PodResourcesTest, HoldsNothingElseUpWhileTheKubeletIsSlow) {
  kubelet_.Start();
  kubelet_.SetPodResourcesDelay(minutes(10));
  std::atomic<bool> answered = false;
  std::promise<void> other;
  {
    PodResources patient(loop_, folder_ / "kubelet", minutes(10));
    loop_.Start();
    loop_.Post([&] {
      patient.List([&](const auto&) { answered = true; });
      loop_.Post([&] { other.set_value(); });
    });
    EXPECT_EQ(other.get_future().wait_for(minutes(1)), std::future_status::ready);
    loop_.Stop();
  }
  EXPECT_FALSE(answered);
}

TEST_F(PodResourcesTest, CallsNoOneBackOnceItIsGone) {
  kubelet_.Start();
  kubelet_.SetPodResourcesDelay(minutes(10));
  bool called = false;
  {
    PodResources client(loop_, folder_ / "kubelet", milliseconds(50));
    for (int i = 0; i < 10; ++i) client.List([&](const auto&) { called = true; });
  }
  loop_.Start();
  EXPECT_EQ(List(hasty_).error().code(),
            base::Code::kDeadlineExceeded);  // the others' time has also passed by then
  EXPECT_FALSE(called);
}

}  // namespace
}  // namespace penstock::protocol::kubelet
