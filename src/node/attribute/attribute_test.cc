#include "node/attribute/attribute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/share/assignment.h"

namespace penstock::node::attribute {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

constexpr char kUid[] = "6f1c0b5a-1111-2222-3333-444455556666";
const base::WallTime kNow{1000s};

ledger::Lease Handed(const std::string& id, std::vector<std::string> devices,
                     base::WallTime since = kNow) {
  ledger::Lease lease;
  lease.id = id;
  lease.allocator = "kubelet";
  lease.since = since;
  for (const auto& device : devices) lease.slots.push_back({device, device});
  return lease;
}

TEST(ApplyPods, NamesTheHolderOfWhatWasHanded) {
  ledger::Ledger ledger;
  ASSERT_TRUE(ledger.Add(Handed("k-1", {"G0", "G1"})).ok());
  ApplyPods({{kUid, "train", "ml", "main", {"G1", "G0"}}}, kNow, kNow, ledger);
  const auto* lease = ledger.Get()->FindLease("k-1");
  ASSERT_NE(lease, nullptr);
  EXPECT_EQ(lease->state, ledger::LeaseState::kHeld);
  EXPECT_EQ(lease->pod, "train");
  EXPECT_EQ(lease->namespace_name, "ml");
  EXPECT_EQ(lease->container, "main");
}

TEST(ApplyPods, RebuildsLeasesAfterARestart) {
  ledger::Ledger ledger;
  ApplyPods({{kUid, "train", "ml", "main", {"G0"}}, {"", "serve", "ml", "web", {"G1"}}}, kNow, kNow,
            ledger);
  EXPECT_EQ(ledger.Get()->HolderOf("G0")->pod, "train");
  EXPECT_EQ(ledger.Get()->HolderOf("G1")->pod, "serve");
}

TEST(ApplyPods, FreesWhatNoPodHoldsButNotWhatIsYoungerThanTheList) {
  ledger::Ledger ledger;
  ASSERT_TRUE(ledger.Add(Handed("old", {"G0"}, kNow - 60s)).ok());
  ASSERT_TRUE(ledger.Add(Handed("young", {"G1"}, kNow)).ok());
  ApplyPods({}, kNow - 10s, kNow, ledger);
  EXPECT_TRUE(ledger.Get()->Free("G0"));
  EXPECT_FALSE(ledger.Get()->Free("G1"));
}

TEST(ApplyPods, WhereNotAllPodsAreKnownNoOneIsTakenToHaveEnded) {
  ledger::Ledger ledger;
  ASSERT_TRUE(ledger.Add(Handed("old", {"G0"}, kNow - 60s)).ok());
  ApplyPods({{kUid, "train", "ml", "main", {"G1"}}}, std::nullopt, kNow, ledger);
  EXPECT_FALSE(ledger.Get()->Free("G0"));
  EXPECT_EQ(ledger.Get()->HolderOf("G1")->pod, "train");
}

TEST(ApplyPods, ASlotThatChangedHandsIsGivenToTheNewPod) {
  ledger::Ledger ledger;
  auto lease = Handed("k-1", {"G0"}, kNow - 60s);
  lease.pod = "old";
  lease.namespace_name = "ml";
  ASSERT_TRUE(ledger.Add(lease).ok());
  ApplyPods({{"", "new", "ml", "main", {"G0"}}}, kNow - 10s, kNow, ledger);
  EXPECT_EQ(ledger.Get()->HolderOf("G0")->pod, "new");
}

TEST(ApplyPods, LeavesOtherAllocatorsAlone) {
  ledger::Ledger ledger;
  auto lease = Handed("r-1", {"G0"}, kNow - 60s);
  lease.allocator = "local";
  ASSERT_TRUE(ledger.Add(lease).ok());
  ApplyPods({}, kNow, kNow, ledger);
  EXPECT_FALSE(ledger.Get()->Free("G0"));
}

constexpr device::Shape kFour{device::Sharing::kTimeSlicing, 4};
constexpr char kSlice[] = "acme.com/slice";

ledger::Lease Shares(const std::string& id, const std::vector<std::string>& slots,
                     base::WallTime since, device::Shape shape = kFour) {
  ledger::Lease lease = Handed(id, {}, since);
  for (const std::string& slot : slots)
    lease.slots.push_back({slot, share::DeviceOf(slot), kSlice, shape});
  return lease;
}

TEST(ApplyPods, NamesTheHolderOfEachShareOfADevice) {
  ledger::Ledger ledger;
  ASSERT_TRUE(ledger.Add(Shares("k-1", {"G0::0", "G0::2"}, kNow)).ok());
  ASSERT_TRUE(ledger.Add(Shares("k-2", {"G0::1"}, kNow)).ok());
  ApplyPods({{"", "one", "ml", "main", {"G0::1"}, kSlice},
             {"", "two", "ml", "main", {"G0::0", "G0::2"}, kSlice}},
            kNow, kNow, ledger);
  ASSERT_EQ(ledger.Get()->leases.size(), 2u);
  EXPECT_EQ(ledger.Get()->FindLease("k-1")->pod, "two");
  EXPECT_EQ(ledger.Get()->FindLease("k-2")->pod, "one");
  ApplyPods({{"", "one", "ml", "main", {"G0::1"}, kSlice}}, kNow, kNow, ledger);
  EXPECT_EQ(ledger.Get()->FindLease("k-1"), nullptr);
  EXPECT_NE(ledger.Get()->FindLease("k-2"), nullptr);
}

TEST(ApplyPods, MakesSharesOfTheKubeletsIdsAfterARestart) {
  const device::Shape mps{device::Sharing::kServer, 4};
  share::Offer offer{.resource = kSlice, .allocator = "kubelet"};
  offer.slots.push_back({.slot = {"G0::0", "G0", kSlice, mps}});
  ledger::Ledger ledger;
  ApplyPods({{"", "one", "ml", "main", {"G0::1"}, kSlice},
             {"", "two", "ml", "main", {"G0::6"}, kSlice},
             {"", "three", "ml", "main", {"G1::3"}, kSlice},
             {"", "four", "ml", "main", {"G2"}, "acme.com/gpu"}},
            kNow, kNow, ledger, {offer});
  const auto slot = [&](const char* lease) { return ledger.Get()->FindLease(lease)->slots.at(0); };
  EXPECT_EQ(slot("pod-ml-one-main"),
            (ledger::Slot{"G0::1", "G0", kSlice, {device::Sharing::kServer, 7}}))
      << "recorded when there were more";
  EXPECT_EQ(slot("pod-ml-two-main"),
            (ledger::Slot{"G0::6", "G0", kSlice, {device::Sharing::kServer, 7}}))
      << "all of them have the same server";
  EXPECT_EQ(slot("pod-ml-three-main"), (ledger::Slot{"G1::3", "G1", kSlice, kFour}))
      << "the holder is unknown, so the most likely one is chosen";
  EXPECT_EQ(slot("pod-ml-four-main"), (ledger::Slot{"G2", "G2", "acme.com/gpu", {}}));
}

TEST(ApplyPods, AShareIsCutAsThoseBesideItAreWhateverIsOfferedNow) {
  share::Offer offer{.resource = kSlice, .allocator = "kubelet"};
  offer.slots.push_back({.slot = {"G0::0", "G0", kSlice, {device::Sharing::kServer, 2}}});
  ledger::Ledger ledger;
  ledger::Lease beside = Shares("k-1", {"G0::0"}, kNow);
  beside.pod = "one";
  ASSERT_TRUE(ledger.Add(beside).ok());
  ASSERT_TRUE(ledger.Add(Shares("k-2", {"G1::0"}, kNow - 60s, {device::Sharing::kServer, 8})).ok());
  ApplyPods({{"", "one", "ml", "main", {"G0::0"}, kSlice},
             {"", "two", "ml", "main", {"G0::1"}, kSlice},
             {"", "three", "ml", "main", {"G1::0", "G1::1"}, kSlice}},
            kNow, kNow, ledger, {offer});
  EXPECT_EQ(ledger.Get()->FindLease("pod-ml-two-main")->slots[0].shape, kFour);
  EXPECT_EQ(ledger.Get()->FindLease("pod-ml-three-main")->slots[0].shape,
            (device::Shape{device::Sharing::kServer, 8}));
}

TEST(ApplyPods, AContainerMayHoldSeveralResources) {
  ledger::Ledger ledger;
  const std::vector<PodHolding> pods = {{kUid, "p", "ml", "main", {"G0"}, "acme.com/gpu"},
                                        {kUid, "p", "ml", "main", {"G1::0"}, kSlice}};
  ApplyPods(pods, kNow, kNow, ledger);
  EXPECT_EQ(ledger.Get()->leases.size(), 2u);
  const auto generation = ledger.Get()->generation;
  ApplyPods(pods, kNow, kNow, ledger);
  EXPECT_EQ(ledger.Get()->generation, generation);
}

TEST(ApplyPods, TheSameIdUnderAnotherNameIsAnotherSlot) {
  ledger::Ledger ledger;
  ASSERT_TRUE(ledger.Add(Shares("k-1", {"G0::0"}, kNow - 60s)).ok());
  ApplyPods({{"", "new", "ml", "main", {"G0::0"}, "acme.com/gpu"}}, kNow - 10s, kNow, ledger);
  ASSERT_EQ(ledger.Get()->leases.size(), 1u);
  EXPECT_EQ(ledger.Get()->leases[0].slots[0].resource, "acme.com/gpu");
}

inventory::Snapshot WithProcess(pid_t pid, bool graphics_only = false) {
  inventory::Snapshot snapshot;
  device::Facts facts;
  facts.id = "G0";
  device::Reading reading;
  reading.processes = {{pid, {}, graphics_only}};
  snapshot.devices.push_back({std::make_shared<const device::Facts>(facts),
                              {},
                              std::make_shared<const device::Reading>(reading),
                              {}});
  return snapshot;
}

os::ProcessInfo Process(pid_t pid, std::string cgroup, pid_t parent = 1) {
  os::ProcessInfo info;
  info.pid = pid;
  info.parent = parent;
  info.start = 7;
  info.command = "python";
  info.cgroups = {std::move(cgroup)};
  return info;
}

TEST(Attribute, KnowsAPodsProcessByItsCgroupInBothDrivers) {
  ledger::Snapshot ledger;
  auto lease = Handed("k-1", {"G0"});
  lease.pod_uid = kUid;
  ledger.leases = {lease};
  for (const char* path :
       {"/kubepods/burstable/pod6f1c0b5a-1111-2222-3333-444455556666/abc",
        "/kubepods.slice/kubepods-pod6f1c0b5a_1111_2222_3333_444455556666.slice/cri-x.scope"}) {
    const auto result = Attribute(WithProcess(42), ledger, {{42, Process(42, path)}});
    EXPECT_THAT(result.outside, IsEmpty()) << path;
    EXPECT_EQ(result.by_lease.at("k-1").at(0).pid, 42);
  }
  const auto other = Attribute(WithProcess(42), ledger, {{42, Process(42, "/user.slice")}});
  EXPECT_EQ(other.outside.at("G0").at(0).command, "python");
}

TEST(Attribute, DistinguishesThoseThatOnlyDraw) {
  const ProcessTable screen = {{42, Process(42, "/system.slice/gdm.service")}};
  const auto alone = Attribute(WithProcess(42, true), {}, screen);
  EXPECT_THAT(alone.outside, IsEmpty());
  EXPECT_EQ(alone.graphics.at("G0").at(0).pid, 42);

  ledger::Snapshot ledger;
  ledger.leases = {Handed("k-1", {"G0"})};
  const auto unknown = Attribute(WithProcess(42, true), ledger, screen);
  EXPECT_THAT(unknown.by_lease, IsEmpty()) << "the process does not belong to the unknown pod";
  EXPECT_EQ(unknown.graphics.at("G0").size(), 1u);

  ledger.leases.Edit(0).pod_uid = kUid;
  const auto rendering =
      Attribute(WithProcess(42, true), ledger,
                {{42, Process(42, "/kubepods/pod" + std::string(kUid) + "/abc")}});
  EXPECT_EQ(rendering.by_lease.at("k-1").at(0).pid, 42) << "the holder may use graphics";
  EXPECT_THAT(rendering.graphics, IsEmpty());
}

TEST(Attribute, KnowsARunsProcessByItsGroupOrItsTree) {
  ledger::Snapshot ledger;
  auto lease = Handed("r-1", {"G0"});
  lease.cgroup = "/penstock/r-1";
  lease.allocator = "local";
  lease.processes = {{10, 7, "", ""}};
  ledger.leases = {lease};
  EXPECT_THAT(Attribute(WithProcess(42), ledger, {{42, Process(42, "/penstock/r-1")}}).outside,
              IsEmpty());
  EXPECT_THAT(
      Attribute(WithProcess(42), ledger, {{42, Process(42, "/", 10)}, {10, Process(10, "/")}})
          .outside,
      IsEmpty());
  EXPECT_EQ(
      Attribute(WithProcess(42), ledger, {{42, Process(42, "/penstock/r-11", 3)}}).outside.size(),
      1u);
}

TEST(Attribute, KnowsAProcessByWhatHoldsTheDevicesOfItsAllocator) {
  for (const api::Allocator& row : api::Allocators()) {
    ledger::Snapshot ledger;
    auto lease = Handed("l-1", {"G0"});
    lease.allocator = row.name;
    lease.pod_uid = kUid;
    lease.cgroup = "/penstock/l-1";
    ledger.leases = {lease};
    const auto known_in = [&](const std::string& group) {
      return Attribute(WithProcess(42), ledger, {{42, Process(42, group)}})
          .by_lease.contains("l-1");
    };
    EXPECT_EQ(known_in("/kubepods/pod" + std::string(kUid) + "/abc"), row.is_for_pods())
        << row.name;
    EXPECT_EQ(known_in("/penstock/l-1"), row.held_by == api::HeldBy::kProcesses) << row.name;
  }
}

TEST(Attribute, EachProcessOfASharedDeviceBelongsToItsOwnHolder) {
  ledger::Snapshot ledger;
  ledger::Lease pod = Shares("k-1", {"G0::0", "G0::3"}, kNow), run = Shares("r-1", {"G0::1"}, kNow);
  run.cgroup = "/penstock/r-1";
  pod.pod_uid = kUid;
  run.allocator = "local";
  ledger.leases = {pod, run};
  auto inventory = WithProcess(41);
  inventory.devices[0].reading = std::make_shared<const device::Reading>(
      device::Reading{.processes = {{41, {}}, {42, {}}, {43, {}}, {41, {}}}});
  ProcessTable table = {{41, Process(41, std::string("/kubepods/pod") + kUid + "/abc")},
                        {42, Process(42, "/penstock/r-1")},
                        {43, Process(43, "/user.slice")}};
  const auto result = Attribute(inventory, ledger, table);
  ASSERT_EQ(result.by_lease.size(), 2u);
  ASSERT_EQ(result.by_lease.at("k-1").size(), 1u);
  EXPECT_EQ(result.by_lease.at("k-1")[0].pid, 41);
  EXPECT_EQ(result.by_lease.at("r-1").at(0).pid, 42);
  EXPECT_EQ(result.outside.at("G0").at(0).pid, 43);

  ledger.leases.push_back(Shares("k-2", {"G0::2"}, kNow));
  const auto later = Attribute(inventory, ledger, table);
  EXPECT_THAT(later.outside, IsEmpty()) << "the process may belong to the unknown pod";
  EXPECT_EQ(later.by_lease.at("k-2").at(0).pid, 43);
  EXPECT_EQ(later.by_lease.at("k-1").size(), 1u);
}

TEST(Attribute, ADeviceWithoutALeaseHasItsProcessesOutside) {
  EXPECT_EQ(Attribute(WithProcess(42), {}, {{42, Process(42, "/")}}).outside.size(), 1u);
  EXPECT_THAT(Attribute(WithProcess(42), {}, {}).outside, IsEmpty());
  EXPECT_THAT(PidsOf(WithProcess(42)), ElementsAre(42));
}

}  // namespace
}  // namespace penstock::node::attribute
