// The kubelet's door against a kubelet in this process, which has the real one's habits.
#include "door/kubelet_plugin.h"

#include <future>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"
#include "edge/kubelet/fake/fake_kubelet.h"
#include "os/temporary_folder.h"

namespace penstock::door {
namespace {

using base::Code;
using device::HealthState;
using node::ledger::Lease;
using testing::Contains;
using testing::HasSubstr;

constexpr char kGpu[] = "acme.com/gpu";

class KubeletDoorTest : public testing::Test {
 protected:
  KubeletDoorTest() {
    kubelet_.Start();
    control_.Start();
    io_.Start();
    On([this] {
      inventory_.SetVendor({"acme", std::make_shared<const device::Driver>(device::testing::AcmeDriver()), ""});
      std::vector<device::Facts> facts;
      for (int i = 0; i < 4; ++i) facts.push_back(device::testing::AcmeDevice(i, 4));
      inventory_.SetFacts("acme", facts, "", control_.clock().Wall());
      for (const auto& one : facts) inventory_.SetHealth(one.id, HealthState::kHealthy, "", control_.clock().Wall());
      door_ = std::make_unique<KubeletDoor>(
          control_, io_,
          KubeletDoor::Options{.kubelet_dir = kubelet_.kubelet_dir(),
                               .host_path = [](const std::string& path) { return "/host" + path; },
                               .kubelet_has = [this](const KubeletAmounts& amounts) { kubelet_has_.Set(amounts); }},
          inventory_, ledger_, offers_, device::testing::FindAcme);
    });
  }
  ~KubeletDoorTest() override {
    On([this] { door_.reset(); });
    control_.Stop();
    io_.Stop();
  }

  void Open() {
    On([this] { door_->Open(); });
    ASSERT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
  }

  template <typename Function>
  void On(Function function) {
    std::promise<void> done;
    control_.Post([&] {
      function();
      done.set_value();
    });
    done.get_future().wait();
  }

  /// Waits until the ledger satisfies the predicate.
  bool WaitForLedger(const std::function<bool(const node::ledger::Snapshot&)>& predicate) {
    std::promise<void> seen;
    std::atomic<bool> told = false;
    auto subscription = ledger_.published().Subscribe(
        [&](const auto& snapshot) {
          if (predicate(*snapshot) && !told.exchange(true)) seen.set_value();
        },
        true);
    return seen.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  }

  bool WaitForKubeletHas(std::size_t capacity, std::size_t allocatable) {
    std::promise<void> seen;
    std::atomic<bool> told = false;
    auto subscription = kubelet_has_.Subscribe(
        [&](const auto& amounts) {
          if (*amounts == KubeletAmounts{{kGpu, {capacity, allocatable}}} && !told.exchange(true)) seen.set_value();
        },
        true);
    return seen.get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  }

  base::Published<KubeletAmounts> kubelet_has_;
  os::TemporaryFolder folder_;
  edge::kubelet::FakeKubelet kubelet_{folder_.path()};
  os::Loop control_{"control"}, io_{"io"};
  node::inventory::Inventory inventory_;
  node::ledger::Ledger ledger_;
  node::share::Offers offers_{inventory_, ledger_, device::testing::FindAcme, {.kubelet = true}};
  std::unique_ptr<KubeletDoor> door_;
};

TEST_F(KubeletDoorTest, AnswersWithTheDialectsEditsAndRecordsALease) {
  Open();
  const auto answer = kubelet_.Allocate(kGpu, {"G3", "G1"});
  ASSERT_TRUE(answer.ok()) << answer.error().ToString();
  EXPECT_EQ(answer->environment.at("ACME"), "G1,G3");
  EXPECT_THAT(answer->files, Contains("/dev/acme3:/host/dev/acme3:rw"));
  EXPECT_THAT(answer->files, Contains("/dev/acmectl:/host/dev/acmectl:rw"));
  EXPECT_FALSE(ledger_.Get()->Free("G1"));
  EXPECT_TRUE(ledger_.Get()->Free("G0"));
}

TEST_F(KubeletDoorTest, NamesThePodOnceTheKubeletDoes) {
  Open();
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G2"}).ok());
  kubelet_.SetPods({{"ml", "train", "main", kGpu, {"G2"}}});
  EXPECT_TRUE(WaitForLedger([](const auto& ledger) { return ledger.HolderOf("G2") != nullptr && ledger.HolderOf("G2")->pod == "train"; }));
}

TEST_F(KubeletDoorTest, TheKubeletHearsOfHealthAndOfStrangersAndOfTheirEnd) {
  Open();
  On([this] { inventory_.SetHealth("G0", HealthState::kUnhealthy, "XID 79", control_.clock().Wall()); });
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 3));
  On([this] { ledger_.SetOutside("G1", {{42, 1, "ann", "python"}}); });
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
  const auto refused = kubelet_.Allocate(kGpu, {"G1"});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("process 42 (python) of ann"));
  On([this] {
    inventory_.SetHealth("G0", HealthState::kHealthy, "", control_.clock().Wall());
    ledger_.SetOutside("G1", {});
  });
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
}

TEST_F(KubeletDoorTest, TellsOnceTheKubeletHasTheListAndEachTimeItHasAnother) {
  Open();
  EXPECT_TRUE(WaitForKubeletHas(4, 4));
  On([this] { inventory_.SetHealth("G0", HealthState::kUnhealthy, "XID 79", control_.clock().Wall()); });
  EXPECT_TRUE(WaitForKubeletHas(4, 3));
}

TEST_F(KubeletDoorTest, WhatTheKubeletGivesOutAnewItsFormerHolderHasGivenBack) {
  Open();
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G0", "G1"}).ok());
  const std::string former = ledger_.Get()->HolderOf("G0")->id;
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G1"}).ok());
  EXPECT_EQ(ledger_.Get()->FindLease(former), nullptr);
  EXPECT_TRUE(ledger_.Get()->Free("G0"));
  EXPECT_FALSE(ledger_.Get()->Free("G1"));
}

TEST_F(KubeletDoorTest, RefusesWhatAnotherDoorHolds) {
  Open();
  On([this] {
    Lease lease;
    lease.id = "r-1";
    lease.door = "local";
    lease.slots = {{"G0", "G0"}};
    EXPECT_TRUE(ledger_.Hand(lease).ok());
  });
  const auto refused = kubelet_.Allocate(kGpu, {"G1", "G0"});
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message(), HasSubstr("held by r-1"));
  EXPECT_TRUE(ledger_.Get()->Free("G1"));
}

TEST_F(KubeletDoorTest, RemembersWhatPodsHeldUntilTheKubeletDeniesIt) {
  Lease lease;
  lease.id = "k-1";
  lease.door = "kubelet";
  lease.slots = {{"G0", "G0"}};
  lease.state = node::ledger::LeaseState::kHeld;
  On([&] { door_->Recover({lease}); });
  EXPECT_FALSE(ledger_.Get()->Free("G0"));
  Open();
  EXPECT_TRUE(WaitForLedger([](const auto& ledger) { return ledger.Free("G0"); }));
}

TEST_F(KubeletDoorTest, PrefersLinkedDevices) {
  Open();
  const auto chosen = kubelet_.Prefer(kGpu, {"G3", "G1", "G2"}, {}, 2);
  ASSERT_TRUE(chosen.ok());
  EXPECT_THAT(*chosen, testing::ElementsAre("G2", "G3"));
}

}  // namespace
}  // namespace penstock::door
