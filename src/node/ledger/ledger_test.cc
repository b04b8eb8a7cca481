#include "node/ledger/ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "node/ledger/checkpoint.h"

namespace penstock::node::ledger {
namespace {

using base::Code;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

Lease MakeLease(const std::string& id, std::vector<std::string> devices) {
  Lease lease;
  lease.id = id;
  lease.door = "local";
  for (const std::string& device : devices) lease.slots.push_back({device, device});
  lease.since = base::WallTime(1000s);
  return lease;
}

TEST(Ledger, GivesEachSlotToOneHolderAllOrNone) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Hand(MakeLease("a", {"G0", "G1"})).ok());
  const auto refused = ledger.Hand(MakeLease("b", {"G2", "G1"}));
  EXPECT_EQ(refused.error().code(), Code::kAlreadyExists);
  EXPECT_THAT(refused.error().message(), HasSubstr("G1 is held by a"));
  EXPECT_TRUE(ledger.Get()->Free("G2"));
  EXPECT_EQ(ledger.Get()->HolderOf("G1")->id, "a");
  ledger.Release("a");
  EXPECT_TRUE(ledger.Hand(MakeLease("b", {"G2", "G1"})).ok());
}

TEST(Ledger, AnUpdateCannotMoveSlots) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Hand(MakeLease("a", {"G0"})).ok());
  Lease other = MakeLease("a", {"G7"});
  other.pod = "train";
  ASSERT_TRUE(ledger.Update(other).ok());
  EXPECT_EQ(ledger.Get()->FindLease("a")->pod, "train");
  EXPECT_EQ(ledger.Get()->FindLease("a")->slots[0].id, "G0");
  EXPECT_EQ(ledger.Update(MakeLease("x", {})).error().code(), Code::kNotFound);
}

TEST(Ledger, SomebodyOutsideMakesADeviceNotFree) {
  Ledger ledger;
  ledger.SetOutside("G0", {{42, 7, "root", "python"}});
  EXPECT_FALSE(ledger.Get()->Free("G0"));
  ledger.SetOutside("G0", {});
  EXPECT_TRUE(ledger.Get()->Free("G0"));
}

TEST(Ledger, TellsOnlyChanges) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Hand(MakeLease("a", {"G0"})).ok());
  const auto before = ledger.Get()->generation;
  ASSERT_TRUE(ledger.Update(MakeLease("a", {"G0"})).ok());
  ledger.Release("none");
  ledger.SetOutside("G1", {});
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
  ASSERT_TRUE(ledger.Hand(lease).ok());
  const auto back = DecodeCheckpoint(EncodeCheckpoint(*ledger.Get(), "boot-1"), "boot-1", "ledger.json");
  ASSERT_TRUE(back.ok()) << back.error().message();
  ASSERT_EQ(back->size(), 1u);
  EXPECT_EQ((*back)[0], lease);
}

TEST(Checkpoint, OfAnotherBootHoldsNothing) {
  Ledger ledger;
  ASSERT_TRUE(ledger.Hand(MakeLease("a", {"G0"})).ok());
  EXPECT_TRUE(DecodeCheckpoint(EncodeCheckpoint(*ledger.Get(), "boot-1"), "boot-2", "f")->empty());
}

TEST(Checkpoint, ANewerOneIsLeftAloneAndADamagedOneIsSaid) {
  EXPECT_EQ(DecodeCheckpoint(R"({"version": 2, "strange": []})", "b", "f").error().code(), Code::kFailedPrecondition);
  for (const char* text : {"", "{", R"({"version": "1"})", R"({"version": 1, "leases": [{"id": "a"}]})",
                           R"({"version": 1, "leases": [{"id": "a", "door": "l", "slots": [1]}]})"})
    EXPECT_EQ(DecodeCheckpoint(text, "b", "f").error().code(), Code::kDataLoss) << text;
}

}  // namespace
}  // namespace penstock::node::ledger
