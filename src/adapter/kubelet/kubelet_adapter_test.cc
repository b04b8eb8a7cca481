// Tests KubeletAdapter against a fake kubelet in this process, which behaves like the real one.
#include "adapter/kubelet/kubelet_adapter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "adapter/kubelet/testing/kubelet_adapter_fixture.h"
#include "base/core/testing/must.h"
#include "node/inventory/testing/acme_parts.h"

namespace penstock::adapter::kubelet {
namespace {

using device::HealthState;
using node::ledger::Lease;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

TEST_F(KubeletAdapterTest, AnswersWithTheDialectsEditsAndRecordsALease) {
  Open();
  const auto answer = Must(kubelet_.Allocate(kGpu, {"G3", "G1"}));
  EXPECT_EQ(answer.environment.at("ACME"), "G1,G3");
  EXPECT_THAT(answer.files, Contains("/dev/acme3:/host/dev/acme3:rw"));
  EXPECT_THAT(answer.files, Contains("/dev/acmectl:/host/dev/acmectl:rw"));
  EXPECT_FALSE(ledger_.Get()->Free("G1"));
  EXPECT_TRUE(ledger_.Get()->Free("G0"));
}

TEST_F(KubeletAdapterTest, NamesThePodOnceTheKubeletDoes) {
  Open();
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G2"}).ok());
  kubelet_.SetPods({{"ml", "train", "main", kGpu, {"G2"}}});
  EXPECT_TRUE(WaitForPod("G2", "train"));
}

TEST_F(KubeletAdapterTest, TheKubeletHearsOfHealthAndOfStrangersAndOfTheirEnd) {
  Open();
  SetHealth("G0", HealthState::kUnhealthy, "XID 79");
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 3));
  On([this] { ledger_.SetAttributed({.outside = {{"G1", {{42, 1, "ann", "python"}}}}}); });
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 2));
  EXPECT_THAT(kubelet_.Allocate(kGpu, {"G1"}).error().message(),
              AllOf(HasSubstr("in use by a process of ann"), Not(HasSubstr("python")),
                    Not(HasSubstr("42"))));
  On([this] {
    inventory_.SetHealth("G0", HealthState::kHealthy, "", control_.clock().Wall());
    ledger_.SetAttributed({});
  });
  EXPECT_TRUE(kubelet_.WaitForHealthy(kGpu, 4));
}

TEST_F(KubeletAdapterTest, ReportsOnceTheKubeletHasTheListAndEachTimeItHasAnother) {
  Open();
  EXPECT_TRUE(WaitForKubeletHas(4, 4));
  SetHealth("G0", HealthState::kUnhealthy, "XID 79");
  EXPECT_TRUE(WaitForKubeletHas(4, 3));
}

TEST_F(KubeletAdapterTest, ReportsNoNumbersWhileTheKubeletIsBehindTheList) {
  Open();
  ASSERT_TRUE(WaitForKubeletHas(4, 4));
  kubelet_.CountLate(true);
  const int messages = kubelet_.Messages(kGpu);
  SetHealth("G0", HealthState::kUnhealthy, "XID 79");
  EXPECT_TRUE(kubelet_has_.Get()->empty());
  ASSERT_TRUE(kubelet_.WaitForMessages(kGpu, messages + 1));
  ASSERT_TRUE(kubelet_.WaitForRequests(kubelet_.Requests() + 2));
  EXPECT_TRUE(kubelet_has_.Get()->empty());
  kubelet_.CountLate(false);
  EXPECT_TRUE(WaitForKubeletHas(4, 3));
}

TEST_F(KubeletAdapterTest, ReportsNoNumbersOnceTheKubeletHasDroppedTheList) {
  Open();
  ASSERT_TRUE(WaitForKubeletHas(4, 4));
  kubelet_.Refuse("not now");
  kubelet_.EndStream(kGpu);
  EXPECT_TRUE(WaitForKubeletHas({}));
  kubelet_.Refuse("");
  EXPECT_TRUE(WaitForKubeletHas(4, 4));
}

/// A container gets devices of the init containers before it; the kubelet keeps the others for the
/// pod.
TEST_F(KubeletAdapterTest, WhatTheKubeletGivesOutAgainItsFormerHolderHasGivenBackAndNothingElse) {
  Open();
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G0", "G1"}).ok());
  const std::string former = ledger_.Get()->HolderOf("G0")->id;
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G1"}).ok());
  EXPECT_NE(ledger_.Get()->HolderOf("G1")->id, former);
  EXPECT_EQ(ledger_.Get()->HolderOf("G0")->id, former);
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G0"}).ok());
  EXPECT_EQ(ledger_.Get()->FindLease(former), nullptr);
}

/// Each release ends a record of usage.
TEST_F(KubeletAdapterTest, WhatIsGivenOutAgainTogetherIsReleasedOnce) {
  Open();
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G0", "G1", "G2"}).ok());
  std::atomic<int> changes = 0;
  const auto follow = ledger_.published().Subscribe([&](const auto&) { ++changes; }, false);
  ASSERT_TRUE(kubelet_.Allocate(kGpu, {"G0", "G1", "G2"}).ok());
  EXPECT_LE(changes, 2) << "one release, one allocation";
}

TEST_F(KubeletAdapterTest, RefusesWhatAnotherAllocatorHolds) {
  Open();
  On([this] {
    EXPECT_TRUE(ledger_.Add({.id = "r-1", .allocator = "local", .slots = {{"G0", "G0"}}}).ok());
  });
  EXPECT_THAT(kubelet_.Allocate(kGpu, {"G1", "G0"}).error().message(), HasSubstr("held by r-1"));
  EXPECT_TRUE(ledger_.Get()->Free("G1"));
}

TEST_F(KubeletAdapterTest, RemembersWhatPodsHeldUntilTheKubeletDeniesIt) {
  const Lease lease{.id = "k-1",
                    .allocator = "kubelet",
                    .slots = {{"G0", "G0"}},
                    .state = node::ledger::LeaseState::kHeld};
  On([&] { adapter_->Recover({lease}); });
  EXPECT_FALSE(ledger_.Get()->Free("G0"));
  Open();
  EXPECT_TRUE(WaitForLedger([](const auto& ledger) { return ledger.Free("G0"); }));
}

TEST_F(KubeletAdapterTest, PrefersPartsOfDevicesThatAreInUse) {
  const auto facts = node::inventory::AcmeWithParts({{"1g.5gb"}, {"1g.5gb", "3g.20gb"}});
  On([&] {
    inventory_.SetFacts("acme", facts, "", control_.clock().Wall());
    for (const auto& one : facts) {
      inventory_.SetHealth(one.id, device::HealthState::kHealthy, "", control_.clock().Wall());
      inventory_.SetReading(one.id, {}, control_.clock().Wall());
    }
    adapter_->Open();
  });
  constexpr char kSmall[] = "acme.com/1g.5gb";
  ASSERT_TRUE(WaitForIds(kSmall, {"G0.0", "G1.0"}));
  EXPECT_EQ(Must(kubelet_.Prefer(kSmall, {"G0.0", "G1.0"}, {}, 1)).at(0), "G0.0");
  On([&] {
    for (const auto& offer : *offers_.Get())
      for (const auto& offered : offer.slots)
        if (offered.slot.device == "G1.1") {
          EXPECT_TRUE(ledger_.Add({.id = "other", .slots = {offered.slot}}).ok());
        }
  });
  EXPECT_EQ(Must(kubelet_.Prefer(kSmall, {"G0.0", "G1.0"}, {}, 1)).at(0), "G1.0");
}

TEST_F(KubeletAdapterTest, PrefersLinkedDevices) {
  Open();
  const auto chosen = Must(kubelet_.Prefer(kGpu, {"G3", "G1", "G2"}, {}, 2));
  EXPECT_THAT(chosen, testing::ElementsAre("G2", "G3"));
}

}  // namespace
}  // namespace penstock::adapter::kubelet
