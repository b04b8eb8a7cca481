#include "view/preview.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"
#include "node/inventory/testing/acme_inventory.h"

namespace penstock::view {
namespace {

using api::Effect;
using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Key;
using testing::Not;
using testing::SizeIs;

constexpr base::WallTime kNow{std::chrono::seconds(1700000000)};

/// Two healthy devices, the first held by a pod and the second by a user.
class PreviewTest : public testing::Test {
 protected:
  PreviewTest() {
    node::inventory::ReportHealthy(inventory_, node::inventory::AcmeDevices(2, 2), kNow);
    for (const char* id : {"G0", "G1"}) inventory_.SetReading(id, {}, kNow);
    node::ledger::Lease pod{.id = "k-1", .allocator = "kubelet", .slots = {{"G0", "G0"}}};
    pod.pod = "train-0";
    pod.namespace_name = "ml";
    ledger_.leases = {pod};
    machine_.os_id = "debian";
  }

  PreviewNode Node() {
    return {.inventory = *(snapshot_ = inventory_.published().Get()),
            .ledger = ledger_,
            .dialect_of = device::testing::FindAcme,
            .machine = machine_};
  }

  node::inventory::Inventory inventory_;
  std::shared_ptr<const node::inventory::Snapshot> snapshot_;
  node::ledger::Snapshot ledger_;
  os::MachineFacts machine_;
};

TEST_F(PreviewTest, ShowsWhatEachAllocatorWouldOfferAndTheLabels) {
  const Preview preview = MakePreview({}, Node());
  ASSERT_THAT(preview.offers, SizeIs(1));
  EXPECT_EQ(preview.offers[0].allocator, "kubelet");
  EXPECT_THAT(preview.offers[0].slots, SizeIs(2));
  EXPECT_THAT(preview.labels, Contains(Key("acme.com/gpu.count")));
}

TEST_F(PreviewTest, EqualConfigurationsMakeAnEmptyPlan) {
  EXPECT_EQ(PreviewConfig({}, {}, {}, Node()), api::ConfigPreview{});
}

TEST_F(PreviewTest, NamesWhatMovesAndWhoHoldsIt) {
  api::NodeConfig next;
  next.assignments = {{.devices = {"0"}, .allocator = "local"}};
  const api::ConfigPreview preview =
      PreviewConfig({}, api::KeepUntilRestart({}, next), next, Node());
  EXPECT_THAT(preview.changes,
              ElementsAre(api::ConfigChange{"allocators.assign", "[]",
                                            "[{devices: [0], allocator: local}]", Effect::kNow}));
  EXPECT_THAT(
      preview.resources,
      ElementsAre(
          api::PreviewedResource{"kubelet", "acme.com/gpu", 2, 1, Effect::kNow, {"pod ml/train-0"}},
          api::PreviewedResource{"local", "acme.com/gpu", 0, 1, Effect::kNow, {}}));
  EXPECT_THAT(preview.labels, IsEmpty());
  EXPECT_THAT(
      preview.remarks,
      ElementsAre(
          "GPU 0 (G0) is held by pod ml/train-0; once released, it is assigned to local users"));
}

TEST_F(PreviewTest, ShowsWhatSharingWouldMakeOfEachResourceAndWhoIsTouched) {
  api::NodeConfig next;
  next.sharing.rules = {{.strategy = api::ShareStrategy::kTimeSlicing,
                         .replicas = 4,
                         .rename = "acme.com/gpu.shared"}};
  const api::ConfigPreview preview = PreviewConfig({}, next, next, Node());
  EXPECT_THAT(
      preview.resources,
      ElementsAre(
          api::PreviewedResource{"kubelet", "acme.com/gpu", 2, 0, Effect::kNow, {"pod ml/train-0"}},
          api::PreviewedResource{"kubelet", "acme.com/gpu.shared", 0, 8, Effect::kNow, {}}));
  EXPECT_THAT(preview.remarks,
              ElementsAre("GPU 0 (G0) is held by pod ml/train-0 as it is offered now; that part "
                          "stays held and cannot be allocated again until it is released"));
  EXPECT_THAT(preview.labels,
              Contains(testing::Field(&api::PreviewedLabel::key, "acme.com/gpu.shares")));
}

TEST_F(PreviewTest, ShowsThatSharesWouldBeCutOtherwise) {
  api::NodeConfig now, next;
  now.sharing.rules = {{.strategy = api::ShareStrategy::kTimeSlicing, .replicas = 4}};
  next = now;
  next.sharing.rules[0].strategy = api::ShareStrategy::kServer;
  ledger_.leases.Edit(0).slots = {
      {"G1::2", "G1", "acme.com/gpu", {device::Sharing::kTimeSlicing, 4}}};
  const api::ConfigPreview preview = PreviewConfig(now, next, next, Node());
  EXPECT_THAT(preview.resources,
              ElementsAre(api::PreviewedResource{
                  "kubelet", "acme.com/gpu", 8, 4, Effect::kNow, {"pod ml/train-0"}}))
      << "an Acme Small has no server";
  EXPECT_THAT(preview.remarks, Contains(testing::HasSubstr("an Acme Small has no server")));
  next.sharing.rules[0] = {.strategy = api::ShareStrategy::kTimeSlicing, .replicas = 2};
  EXPECT_THAT(PreviewConfig(now, next, next, Node()).resources,
              ElementsAre(api::PreviewedResource{
                  "kubelet", "acme.com/gpu", 8, 4, Effect::kNow, {"pod ml/train-0"}}));
}

TEST_F(PreviewTest, WhatWasMovedByHandStaysWhereItIs) {
  PreviewNode node = Node();
  node.moves = {{"G1", {"local"}}};
  api::NodeConfig next;
  next.assignments = {{.devices = {"1"}, .allocator = "none"}};
  EXPECT_THAT(PreviewConfig({}, next, next, node).resources, IsEmpty());
}

TEST_F(PreviewTest, RemarksOnRulesThatMatchNothing) {
  api::NodeConfig next;
  next.assignments = {{.devices = {"0"}, .allocator = "none"},
                      {.devices = {"7", "*H100*"}, .allocator = "none"},
                      {.devices = {}, .allocator = "local"}};
  EXPECT_THAT(MakePreview(next, Node()).remarks,
              ElementsAre("allocators.assign[1]: matches no device of this node"));
  EXPECT_THAT(PreviewConfig({}, {}, next, Node()).remarks, SizeIs(1));
}

TEST_F(PreviewTest, ShowsLabelsThatComeAndGoAtOnce) {
  api::NodeConfig next;
  next.labels.host_features = api::Switch::kOff;
  const api::ConfigPreview preview = PreviewConfig({}, next, next, Node());
  EXPECT_THAT(preview.resources, IsEmpty());
  EXPECT_THAT(preview.labels,
              Contains(api::PreviewedLabel{"feature.node.kubernetes.io/system-os_release.ID",
                                           "debian", std::nullopt, Effect::kNow}));
}

TEST_F(PreviewTest, LeavesTheHostsFeaturesToNfdWhereItIsThere) {
  PreviewNode node = Node();
  node.nfd = true;
  EXPECT_THAT(MakePreview({}, node).labels,
              Not(Contains(Key("feature.node.kubernetes.io/system-os_release.ID"))));
}

}  // namespace
}  // namespace penstock::view
