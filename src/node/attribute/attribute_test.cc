#include "node/attribute/attribute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::node::attribute {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using namespace std::chrono_literals;

constexpr char kUid[] = "6f1c0b5a-1111-2222-3333-444455556666";
const base::WallTime kNow{1000s};

ledger::Lease Handed(const std::string& id, std::vector<std::string> devices, base::WallTime since = kNow) {
  ledger::Lease lease;
  lease.id = id;
  lease.door = "kubelet";
  lease.since = since;
  for (const auto& device : devices) lease.slots.push_back({device, device});
  return lease;
}

TEST(ApplyPods, NamesTheHolderOfWhatWasHanded) {
  ledger::Ledger ledger;
  ASSERT_TRUE(ledger.Hand(Handed("k-1", {"G0", "G1"})).ok());
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
  ApplyPods({{kUid, "train", "ml", "main", {"G0"}}, {"", "serve", "ml", "web", {"G1"}}}, kNow, kNow, ledger);
  EXPECT_EQ(ledger.Get()->HolderOf("G0")->pod, "train");
  EXPECT_EQ(ledger.Get()->HolderOf("G1")->pod, "serve");
}

TEST(ApplyPods, FreesWhatNoPodHoldsButNotWhatIsYoungerThanTheList) {
  ledger::Ledger ledger;
  ASSERT_TRUE(ledger.Hand(Handed("old", {"G0"}, kNow - 60s)).ok());
  ASSERT_TRUE(ledger.Hand(Handed("young", {"G1"}, kNow)).ok());
  ApplyPods({}, kNow - 10s, kNow, ledger);
  EXPECT_TRUE(ledger.Get()->Free("G0"));
  EXPECT_FALSE(ledger.Get()->Free("G1"));
}

TEST(ApplyPods, ASlotThatChangedHandsIsGivenToTheNewPod) {
  ledger::Ledger ledger;
  auto lease = Handed("k-1", {"G0"}, kNow - 60s);
  lease.pod = "old";
  lease.namespace_name = "ml";
  ASSERT_TRUE(ledger.Hand(lease).ok());
  ApplyPods({{"", "new", "ml", "main", {"G0"}}}, kNow - 10s, kNow, ledger);
  EXPECT_EQ(ledger.Get()->HolderOf("G0")->pod, "new");
}

TEST(ApplyPods, LeavesOtherDoorsAlone) {
  ledger::Ledger ledger;
  auto lease = Handed("r-1", {"G0"}, kNow - 60s);
  lease.door = "local";
  ASSERT_TRUE(ledger.Hand(lease).ok());
  ApplyPods({}, kNow, kNow, ledger);
  EXPECT_FALSE(ledger.Get()->Free("G0"));
}

inventory::Snapshot WithProcess(pid_t pid) {
  inventory::Snapshot snapshot;
  device::Facts facts;
  facts.id = "G0";
  device::Reading reading;
  reading.processes = {{pid, {}}};
  snapshot.devices.push_back({std::make_shared<const device::Facts>(facts), {}, std::make_shared<const device::Reading>(reading), {}});
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
  for (const char* path : {"/kubepods/burstable/pod6f1c0b5a-1111-2222-3333-444455556666/abc",
                           "/kubepods.slice/kubepods-pod6f1c0b5a_1111_2222_3333_444455556666.slice/cri-x.scope"}) {
    const auto result = Attribute(WithProcess(42), ledger, {{42, Process(42, path)}});
    EXPECT_THAT(result.outside, IsEmpty()) << path;
    EXPECT_EQ(result.by_lease.at("k-1").at(0).pid, 42);
  }
  const auto other = Attribute(WithProcess(42), ledger, {{42, Process(42, "/user.slice")}});
  EXPECT_EQ(other.outside.at("G0").at(0).command, "python");
}

TEST(Attribute, KnowsARunsProcessByItsGroupOrItsTree) {
  ledger::Snapshot ledger;
  auto lease = Handed("r-1", {"G0"});
  lease.door = "local";
  lease.processes = {{10, 7, "", ""}};
  ledger.leases = {lease};
  EXPECT_THAT(Attribute(WithProcess(42), ledger, {{42, Process(42, "/penstock/r-1")}}).outside, IsEmpty());
  EXPECT_THAT(Attribute(WithProcess(42), ledger, {{42, Process(42, "/", 10)}, {10, Process(10, "/")}}).outside, IsEmpty());
  EXPECT_EQ(Attribute(WithProcess(42), ledger, {{42, Process(42, "/penstock/r-11", 3)}}).outside.size(), 1u);
}

TEST(Attribute, ADeviceWithoutALeaseHasItsProcessesOutside) {
  EXPECT_EQ(Attribute(WithProcess(42), {}, {{42, Process(42, "/")}}).outside.size(), 1u);
  EXPECT_THAT(Attribute(WithProcess(42), {}, {}).outside, IsEmpty());
  EXPECT_THAT(PidsOf(WithProcess(42)), ElementsAre(42));
}

}  // namespace
}  // namespace penstock::node::attribute
