// Tests moves of devices between allocators with a kubelet that has the devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapter/kubelet/testing/kubelet_adapter_fixture.h"
#include "node/change/device_moves.h"
#include "node/change/manual_assignments.h"
#include "os/core/file.h"
#include "os/testing/eventually.h"

namespace penstock::adapter::kubelet {
namespace {

class MovesWithAKubelet : public KubeletAdapterTest {
 protected:
  MovesWithAKubelet() {
    On([this] {
      changes_ = std::make_unique<node::change::DeviceChanges>(
          control_, io_, node::change::DeviceChanges::Node{inventory_, ledger_, offers_},
          [this](auto done) { adapter_->QueryCounted(std::move(done)); }, folder_ / "changes.json",
          std::vector<node::change::DeviceChange>{});
      moves_ = std::make_unique<node::change::DeviceMoves>(
          control_, io_, node::change::DeviceMoves::Node{inventory_, ledger_, offers_, *changes_},
          node::share::EnabledAllocators{"kubelet", "local"},
          [this](bool waits) { adapter_->AwaitReleases(waits); }, folder_ / "doors.json",
          node::change::ManualAssignments{});
      offers_.Configure({}, moves_->Configure({}));
      changes_->Start();
      follow_ = [this](const auto& now, const auto& before) { changes_->Follow(now, before); };
    });
  }
  ~MovesWithAKubelet() override {
    On([this] {
      follow_ = nullptr;
      changes_.reset();
      moves_.reset();
    });
  }

  /// Assigns devices manually; the future gets the answer.
  std::future<base::Result<std::vector<node::change::DeviceMove>>> Set(
      const node::change::MoveRequest& request) {
    auto promise =
        std::make_shared<std::promise<base::Result<std::vector<node::change::DeviceMove>>>>();
    On([&] {
      moves_->Set(
          request, [](const node::change::DeviceMove&) {},
          [promise](const auto& answer) { promise->set_value(answer); });
    });
    return promise->get_future();
  }

  std::string AllocatorOf(const std::string& device) {
    for (const auto& offer : *offers_.Get())
      for (const auto& slot : offer.slots)
        if (slot.slot.device == device) return offer.allocator;
    return "";
  }

  /// Waits until the kubelet was asked this many times which pods hold devices.
  bool WaitForLists(int count) {
    return os::Eventually([&] { return kubelet_.Lists() >= count; });
  }

  static constexpr auto kPatience = std::chrono::seconds(60);
  std::unique_ptr<node::change::DeviceChanges> changes_;
  std::unique_ptr<node::change::DeviceMoves> moves_;
};

TEST_F(MovesWithAKubelet, ADeviceIsOfferedLocallyOnceTheKubeletHasTheShorterList) {
  Open();
  auto answer = Set({{"2"}, "local"});
  ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(answer.get().ok());
  EXPECT_EQ(AllocatorOf("G2"), "local");
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 3, std::chrono::milliseconds(0)))
      << "the kubelet already had the list";
  EXPECT_FALSE(kubelet_.Allocate(kGpu, {"G2"}).ok());
  auto back = Set({{"2"}, "default"});
  ASSERT_EQ(back.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
}

TEST_F(MovesWithAKubelet, AllDevicesLeaveAndTheirPluginEnds) {
  Open();
  auto answer = Set({{"0", "1", "2", "3"}, "local"});
  ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(answer.get().ok());
  EXPECT_TRUE(kubelet_.WaitForDevices(kGpu, [](const auto& devices) { return devices.empty(); }));
  On([this] { EXPECT_THAT(adapter_->Report().resources, testing::IsEmpty()); });
}

TEST_F(MovesWithAKubelet, WaitsForAPodAndNoticesItsEnd) {
  Open();
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G1"}).ok());
  kubelet_.SetPods({{"ml", "train", "main", kGpu, {"G1"}}});
  ASSERT_TRUE(WaitForPod("G1", "train"));
  auto answer = Set({{"1"}, "local", std::chrono::minutes(5)});
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 3));
  // Of the next three looks at the kubelet's pods, the second begins after the request, and the
  // third when the outcome of the second is known.
  const int looks = kubelet_.Lists();
  ASSERT_TRUE(WaitForLists(looks + 3));
  EXPECT_EQ(answer.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_EQ(AllocatorOf("G1"), "");
  kubelet_.SetPods({});
  ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(answer.get().ok());
  EXPECT_EQ(AllocatorOf("G1"), "local");
}

// An agent that is killed just after an Allocate has not written down who has the device.
TEST_F(MovesWithAKubelet, ADeviceStaysUntilItIsKnownWhichPodsHoldDevices) {
  kubelet_.SetPods({{"ml", "train", "main", kGpu, {"G1"}}});
  auto answer = Set({{"1"}, "local", std::chrono::minutes(5)});
  ASSERT_TRUE(WaitForPod("G1", "train"));
  EXPECT_EQ(answer.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_EQ(AllocatorOf("G1"), "");
  kubelet_.SetPods({});
  ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(answer.get().ok());
  EXPECT_EQ(AllocatorOf("G1"), "local");
}

// Likewise where the kubelet has ended, too: its checkpoint has the pod, whose program runs.
TEST_F(MovesWithAKubelet, ADeviceStaysWithAPodThatOnlyTheCheckpointHas) {
  kubelet_.Kill();
  folder_.Write("proc/7/stat", "7 (python) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 100 0 0");
  folder_.Write("proc/7/cmdline", "python");
  folder_.Write("proc/7/cgroup", "0::/kubepods/poduid-1/main\n");
  const std::string checkpoint =
      kubelet_.kubelet_dir() + "/device-plugins/kubelet_internal_checkpoint";
  ASSERT_TRUE(os::WriteFileAtomically(
                  checkpoint, R"({"Data":{"PodDeviceEntries":[{"PodUID":"uid-1","ContainerName":)"
                              R"("main","ResourceName":"acme.com/gpu","DeviceIDs":{"0":["G1"]}}],)"
                              R"("RegisteredDevices":{}},"Checksum":1})")
                  .ok());
  proc_root_ = folder_ / "proc";
  Make();
  auto answer = Set({{"1"}, "local", std::chrono::minutes(5)});
  ASSERT_TRUE(os::Eventually([this] {
    const auto leases = ledger_.Get();
    const auto* holder = leases->HolderOf("G1");
    return holder != nullptr && holder->pod_uid == "uid-1";
  }));
  EXPECT_EQ(answer.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_EQ(AllocatorOf("G1"), "");
}

TEST_F(MovesWithAKubelet, WithoutAKubeletNoOnesWordIsNeeded) {
  Open();
  kubelet_.Kill();
  auto answer = Set({{"1"}, "local"});
  ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(AllocatorOf("G1"), "local");
}

}  // namespace
}  // namespace penstock::adapter::kubelet
