#include "node/ledger/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/ledger/checkpoint.h"

namespace penstock::node::ledger {
namespace {

using ::testing::HasSubstr;
using namespace std::chrono_literals;

Lease MakeLease(const std::string& id, std::vector<std::string> devices) {
  Lease lease;
  lease.id = id;
  lease.allocator = "local";
  for (const std::string& device : devices) lease.slots.push_back({device, device});
  lease.since = base::WallTime(1000s);
  return lease;
}

TEST(Ledger, GivesEachSlotToOneHolderAllOrNone) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Add(MakeLease("a", {"G0", "G1"})).ok());
  const auto refused = ledger.Add(MakeLease("b", {"G2", "G1"}));
  EXPECT_EQ(refused.error().code(), Code::kAlreadyExists);
  EXPECT_THAT(refused.error().message(), HasSubstr("G1 is held by a"));
  EXPECT_TRUE(ledger.Get()->Free("G2"));
  EXPECT_EQ(ledger.Get()->HolderOf("G1")->id, "a");
  ledger.Release("a");
  EXPECT_TRUE(ledger.Add(MakeLease("b", {"G2", "G1"})).ok());
}

TEST(Ledger, AnUpdateCannotMoveSlots) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Add(MakeLease("a", {"G0"})).ok());
  Lease other = MakeLease("a", {"G7"});
  other.pod = "train";
  ASSERT_TRUE(ledger.Update(other).ok());
  EXPECT_EQ(ledger.Get()->FindLease("a")->pod, "train");
  EXPECT_EQ(ledger.Get()->FindLease("a")->slots[0].id, "G0");
  EXPECT_EQ(ledger.Update(MakeLease("x", {})).error().code(), Code::kNotFound);
}

TEST(Ledger, SomeoneOutsideMakesADeviceNotFree) {
  Ledger ledger;
  ledger.SetAttributed({.outside = {{"G0", {{42, 7, "root", "python"}}}}});
  EXPECT_FALSE(ledger.Get()->Free("G0"));
  ledger.SetAttributed({.outside = {{"G0", {}}}});
  EXPECT_TRUE(ledger.Get()->Free("G0"));
}

TEST(Ledger, ProcessesOfAllDevicesAndSomeLeasesChangeTogether) {
  Ledger ledger;
  for (const char* id : {"a", "b", "c"})
    ASSERT_TRUE(ledger.Add(MakeLease(id, {std::string("of-") + id})).ok());
  const Process ann{42, 7, "ann", "python"}, x{43, 7, "root", "Xorg"};
  ledger.SetAttributed({.by_lease = {{"a", {ann}}, {"b", {ann}}, {"gone", {ann}}},
                        .outside = {{"G0", {ann}}, {"G1", {ann}}, {"G2", {}}},
                        .graphics = {{"G0", {x}}}});
  const auto before = ledger.Get();
  EXPECT_EQ(before->FindLease("b")->processes, std::vector<Process>{ann});
  EXPECT_EQ(before->FindLease("b")->since, base::WallTime(1000s));
  EXPECT_TRUE(before->Free("G2"));
  ledger.SetAttributed({.by_lease = {{"b", {}}}, .outside = {{"G1", {ann}}}});
  const auto now = ledger.Get();
  EXPECT_EQ(now->generation, before->generation + 1);
  EXPECT_EQ(now->FindLease("a")->processes, std::vector<Process>{ann});
  EXPECT_TRUE(now->FindLease("b")->processes.empty());
  EXPECT_TRUE(now->Free("G0"));
  EXPECT_TRUE(now->IsOutside("G1", 42));
  EXPECT_TRUE(now->graphics.empty());
}

constexpr device::Shape kSlicedFour{device::Sharing::kTimeSlicing, 4},
    kMpsFour{device::Sharing::kServer, 4};

Lease MakeShares(const std::string& id, const std::vector<std::string>& slots,
                 device::Shape shape = kSlicedFour) {
  Lease lease = MakeLease(id, {});
  for (const std::string& slot : slots)
    lease.slots.push_back({slot, slot.substr(0, slot.find("::")), "acme.com/gpu", shape});
  return lease;
}

TEST(Ledger, GivesEachShareOfADeviceToOneHolder) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Add(MakeShares("a", {"G0::0", "G0::1"})).ok());
  EXPECT_TRUE(ledger.Add(MakeShares("b", {"G0::3", "G1::0"})).ok());
  EXPECT_THAT(ledger.Add(MakeShares("c", {"G0::2", "G0::1"})).error().message(),
              HasSubstr("G0::1 is held by a"));
  EXPECT_EQ(ledger.Get()->InTheWayOf(MakeShares("", {"G0::3"}).slots[0])->id, "b");
  EXPECT_EQ(ledger.Get()->InTheWayOf(MakeShares("", {"G0::2"}).slots[0]), nullptr);
  ledger.Release("a");
  EXPECT_TRUE(ledger.Add(MakeShares("c", {"G0::2", "G0::1"})).ok());
}

TEST(Ledger, AWholeHolderIsAlone) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Add(MakeShares("a", {"G0::0"})).ok());
  EXPECT_EQ(ledger.Add(MakeLease("b", {"G0"})).error().code(), Code::kAlreadyExists);
  ASSERT_TRUE(ledger.Add(MakeLease("b", {"G1"})).ok());
  EXPECT_EQ(ledger.Add(MakeShares("c", {"G1::5"})).error().code(), Code::kAlreadyExists);
}

TEST(Ledger, ADeviceIsSharedInOneWayAtATime) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Add(MakeShares("a", {"G0::0"}, kMpsFour)).ok());
  EXPECT_THAT(ledger.Add(MakeShares("b", {"G0::1"})).error().message(),
              HasSubstr("G0::1 is held by a"));
  EXPECT_EQ(ledger.Add(MakeShares("b", {"G0::1"}, {device::Sharing::kServer, 8})).error().code(),
            Code::kAlreadyExists)
      << "all shares have equal limits";
  EXPECT_TRUE(ledger.Add(MakeShares("b", {"G0::1"}, kMpsFour)).ok());
  ASSERT_TRUE(ledger.Add(MakeShares("c", {"G1::1"})).ok());
  EXPECT_TRUE(ledger.Add(MakeShares("d", {"G1::5"}, {device::Sharing::kTimeSlicing, 8})).ok());
}

TEST(Ledger, ALeaseCannotExcludeItself) {
  Ledger ledger;
  for (Lease lease : {MakeLease("a", {"G0", "G0"}), MakeShares("a", {"G0::1", "G0::1"})})
    EXPECT_EQ(ledger.Add(lease).error().code(), Code::kInvalidArgument);
  Lease both = MakeLease("a", {"G0"});
  both.slots.push_back(MakeShares("", {"G0::1"}).slots[0]);
  EXPECT_EQ(ledger.Add(both).error().code(), Code::kInvalidArgument);
  EXPECT_TRUE(ledger.Get()->leases.empty());
}

TEST(Ledger, AShareThatNoOneKnowsTheShapeOfGetsALikelyOne) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Add(MakeShares("a", {"G0::5", "G1::0"}, {})).ok());
  const auto slots = ledger.Get()->FindLease("a")->slots;
  EXPECT_EQ(slots[0].shape, (device::Shape{device::Sharing::kTimeSlicing, 6}));
  EXPECT_EQ(slots[1].shape, (device::Shape{device::Sharing::kTimeSlicing, 2}));
  for (const char* strange : {"G0::", "G0::x", "G0::99999999999999999999", "odd"})
    EXPECT_GE(WithShape({strange, "G0", "", {}}).shape.shares, 2) << strange;
  EXPECT_EQ(WithShape({"G0", "G0", "", {}}).shape, device::Shape{});
}

TEST(Ledger, ReportsOnlyChanges) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Add(MakeLease("a", {"G0"})).ok());
  const auto before = ledger.Get()->generation;
  ASSERT_TRUE(ledger.Update(MakeLease("a", {"G0"})).ok());
  ledger.Release("none");
  ledger.SetAttributed({.by_lease = {{"a", {}}, {"none", {}}}, .outside = {{"G1", {}}}});
  EXPECT_EQ(ledger.Get()->generation, before);
}

TEST(Checkpoint, ReadsBackWhatItWrote) {
  Ledger ledger;
  Lease lease = MakeLease("a", {"G0"});
  lease.state = LeaseState::kHeld;
  lease.enforcement = Enforcement::kVisibility;
  lease.processes = {{42, 7, "ann", "python \"x\""}};
  lease.pod = "p";
  lease.pod_uid = "u";
  lease.labels = {{"experiment", "lr=0.1"}};
  ASSERT_TRUE(ledger.Add(lease).ok());
  const auto back =
      DecodeCheckpoint(EncodeCheckpoint(*ledger.Get(), "boot-1"), "boot-1", "ledger.json");
  ASSERT_TRUE(back.ok()) << back.error().message();
  ASSERT_EQ(back->size(), 1u);
  EXPECT_EQ((*back)[0], lease);
}

TEST(Checkpoint, OfManyProcessesItWritesFewAndReadsWhatItWrote) {
  constexpr int kLeases = 4096;          // 32 devices with 128 shares each
  const std::string worst(300, '\x01');  // each byte is written as six
  Snapshot snapshot;
  for (int i = 0; i < kLeases; ++i) {
    Lease lease = MakeShares("r-" + std::to_string(i),
                             {"G" + std::to_string(i / 128) + "::" + std::to_string(i % 128)});
    lease.command = worst;
    for (int pid = 1; pid <= (i == 0 ? 1100 : 17); ++pid)
      lease.processes.push_back({pid, 7, "ann", worst});
    snapshot.leases.push_back(std::move(lease));
  }
  const std::string text = EncodeCheckpoint(snapshot, "boot-1");
  EXPECT_LT(text.size(), kMaxCheckpointBytes);
  EXPECT_GT(text.size(), std::size_t{4} << 20);
  const auto back = DecodeCheckpoint(text, "boot-1", "ledger.json");
  ASSERT_TRUE(back.ok()) << back.error().message().substr(0, 1000);
  ASSERT_EQ(back->size(), static_cast<std::size_t>(kLeases));
  EXPECT_EQ(back->front().slots, snapshot.leases.front().slots);
  EXPECT_EQ(back->front().processes.size(), 16u);
  EXPECT_EQ(back->front().processes.front().command.size(), 256u);
  EXPECT_EQ(back->front().command.size(), 256u);
}

TEST(Checkpoint, ReadsBackResourcesAndShapes) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Add(MakeShares("a", {"G0::3", "G1::0"}, kMpsFour)).ok());
  ASSERT_TRUE(ledger.Add(MakeShares("b", {"G2::1"})).ok());
  ASSERT_TRUE(ledger.Add(MakeLease("c", {"G3"})).ok());
  const auto back =
      DecodeCheckpoint(EncodeCheckpoint(*ledger.Get(), "boot-1"), "boot-1", "ledger.json");
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ(*back, ledger.Get()->leases);
}

TEST(Checkpoint, OneFromBeforeThereWereSharesIsRead) {
  const auto back = DecodeCheckpoint(
      R"({"version": 1, "bootId": "b", "leases": [{"id": "a", "door": "kubelet", "slots": [{"id": "G0", "device": "G0"}, {"id": "G1::3", "device": "G1"}]}]})",
      "b", "f");
  ASSERT_TRUE(back.ok()) << back.error().message();
  EXPECT_EQ((*back)[0].slots[0], (Slot{"G0", "G0", "", {}}));
  EXPECT_EQ((*back)[0].slots[1], (Slot{"G1::3", "G1", "", kSlicedFour}));
}

TEST(Checkpoint, HasWhatASlotIsAPartOfAndItsLimits) {
  Ledger ledger;
  Slot slot{"G.1", "G.1", "acme.com/gpu", {}};
  slot.ancestors = {{"G", {base::Mebibytes(80), 98}}};
  slot.capacity = {base::Mebibytes(40), 42};
  slot.limits = {.memory = base::Mebibytes(10), .memory_by = device::Enforcer::kServer};
  ASSERT_TRUE(ledger.Add({.id = "a", .allocator = "kubelet", .slots = {slot}}).ok());
  const auto read =
      DecodeCheckpoint(EncodeCheckpoint(*ledger.Get(), "boot-1"), "boot-1", "ledger.json");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->at(0).slots.at(0), slot);
  Ledger without;
  slot.ancestors.clear();
  ASSERT_TRUE(without.Add({.id = "a", .allocator = "kubelet", .slots = {slot}}).ok());
  const std::string text = EncodeCheckpoint(*without.Get(), "boot-1");
  for (const char* key : {"partOf", "memory", "computeUnits", "limits"})
    EXPECT_THAT(text, testing::Not(testing::HasSubstr(key))) << "0.1.0 reads this, too";
}

TEST(Checkpoint, KnowsWhichChangesConcernLimits) {
  const auto lease = [](const std::string& id, int percent, const std::string& command = "") {
    Slot slot{id + "::0", id, "acme.com/gpu", {device::Sharing::kServer, 2}};
    if (percent > 0)
      slot.limits = {.compute_percent = percent, .compute_by = device::Enforcer::kServer};
    return Lease{.id = id, .allocator = "local", .slots = {slot}, .command = command};
  };
  const Leases before{lease("a", 0), lease("b", 50), lease("c", 0)};
  const auto differs = [&before](const Leases& now) {
    EXPECT_EQ(LimitsDiffer(now, before), LimitsDiffer(before, now));
    return LimitsDiffer(now, before);
  };
  EXPECT_FALSE(differs(before));
  EXPECT_FALSE(differs({lease("b", 50)})) << "those that left had none";
  EXPECT_FALSE(differs({lease("a", 0), lease("b", 50, "train"), lease("d", 0)}));
  EXPECT_TRUE(differs({lease("a", 0), lease("c", 0)}));
  EXPECT_TRUE(differs({lease("a", 0), lease("b", 40), lease("c", 0)}));
  EXPECT_TRUE(differs({lease("a", 10), lease("b", 50), lease("c", 0)}));
  EXPECT_TRUE(differs({lease("a", 0), lease("b", 50), lease("c", 0), lease("d", 50)}));
  EXPECT_TRUE(differs({}));
}

TEST(Checkpoint, OfAnotherBootHoldsNothing) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Add(MakeLease("a", {"G0"})).ok());
  EXPECT_TRUE(DecodeCheckpoint(EncodeCheckpoint(*ledger.Get(), "boot-1"), "boot-2", "f")->empty());
}

TEST(Checkpoint, ANewerOneIsLeftAloneAndADamagedOneIsSaid) {
  EXPECT_EQ(DecodeCheckpoint(R"({"version": 2, "strange": []})", "b", "f").error().code(),
            Code::kFailedPrecondition);
  for (
      const char* text :
      {"", "{", R"({"version": "1"})", R"({"version": 1, "leases": [{"id": "a"}]})",
       R"({"version": 1, "leases": [{"id": "a", "door": "l", "slots": [1]}]})",
       R"({"version": 1, "leases": [{"id": "a", "door": "l", "slots": [], "processes": [{"start": 7}]}]})",
       R"({"version": 1, "leases": [{"id": "a", "door": "l", "slots": [{"id": "G::1", "device": "G", "sharing": "so"}]}]})"})
    EXPECT_EQ(DecodeCheckpoint(text, "b", "f").error().code(), Code::kDataLoss) << text;
}

}  // namespace
}  // namespace penstock::node::ledger
