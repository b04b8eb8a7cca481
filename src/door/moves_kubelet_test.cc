// Devices between doors with a kubelet that really has them.
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "door/doors_keeper.h"
#include "door/kubelet_door_fixture.h"
#include "door/moves.h"

namespace penstock::door {
namespace {

using edge::broker::DeviceMove;

class MovesWithAKubelet : public KubeletDoorTest {
 protected:
  MovesWithAKubelet() {
    On([this] {
      moves_ = std::make_unique<DoorMoves>(control_, io_, DoorMoves::Node{inventory_, ledger_, offers_},
                                           node::share::OpenDoors{.kubelet = true, .local = true},
                                           DoorMoves::Kubelet{.ask_counted = [this](auto done) { door_->AskCounted(std::move(done)); },
                                                              .await_releases = [this](bool waits) { door_->AwaitReleases(waits); }},
                                           folder_ / "doors.json", DevicesByHand{});
      moves_->Configure({});
    });
  }
  ~MovesWithAKubelet() override {
    On([this] { moves_.reset(); });
  }

  /// Moves by hand; the answer, once there is one.
  std::future<base::Result<std::vector<DeviceMove>>> Set(const edge::broker::DoorRequest& request) {
    auto promise = std::make_shared<std::promise<base::Result<std::vector<DeviceMove>>>>();
    On([&] {
      moves_->Set(
          request, [](const DeviceMove&) {}, [promise](const auto& answer) { promise->set_value(answer); });
    });
    return promise->get_future();
  }

  std::string DoorOf(const std::string& device) {
    for (const auto& offer : *offers_.published().Get())
      for (const auto& slot : offer.slots)
        if (slot.slot.device == device) return offer.door;
    return "";
  }

  /// Waits until the kubelet was asked so often who holds what.
  bool WaitForLists(int count) {
    const auto late = std::chrono::steady_clock::now() + kPatience;
    while (kubelet_.Lists() < count) {
      if (std::chrono::steady_clock::now() > late) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

  static constexpr auto kPatience = std::chrono::seconds(60);
  std::unique_ptr<DoorMoves> moves_;
};

TEST_F(MovesWithAKubelet, ADeviceIsOfferedLocallyOnceTheKubeletHasTheShorterList) {
  Open();
  auto answer = Set({{"2"}, "local"});
  ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(answer.get().ok());
  EXPECT_EQ(DoorOf("G2"), "local");
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 3, std::chrono::milliseconds(0))) << "it had the list before";
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
  On([this] { EXPECT_THAT(door_->Report().resources, testing::IsEmpty()); });
}

TEST_F(MovesWithAKubelet, WaitsForAPodAndNoticesItsEnd) {
  Open();
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G1"}).ok());
  kubelet_.SetPods({{"ml", "train", "main", kGpu, {"G1"}}});
  ASSERT_TRUE(WaitForLedger([](const auto& ledger) { return ledger.HolderOf("G1") != nullptr && ledger.HolderOf("G1")->pod == "train"; }));
  auto answer = Set({{"1"}, "local", std::chrono::minutes(5)});
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 3));
  // Of the next three looks at the kubelet's pods the second began after the request, and the third when the second one's outcome was
  // known.
  const int looks = kubelet_.Lists();
  ASSERT_TRUE(WaitForLists(looks + 3));
  EXPECT_EQ(answer.wait_for(std::chrono::seconds(0)), std::future_status::timeout);
  EXPECT_EQ(DoorOf("G1"), "");
  kubelet_.SetPods({});
  ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
  EXPECT_TRUE(answer.get().ok());
  EXPECT_EQ(DoorOf("G1"), "local");
}

TEST_F(MovesWithAKubelet, WithoutAKubeletNobodysWordIsNeeded) {
  Open();
  kubelet_.Kill();
  auto answer = Set({{"1"}, "local"});
  ASSERT_EQ(answer.wait_for(kPatience), std::future_status::ready);
  EXPECT_EQ(DoorOf("G1"), "local");
}

}  // namespace
}  // namespace penstock::door
