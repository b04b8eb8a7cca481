#include "adapter/kubelet/shares_seen.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "device/testing/acme.h"
#include "node/share/offer.h"

namespace penstock::adapter::kubelet {
namespace {

using protocol::kubelet::Checkpoint;
using testing::HasSubstr;

class SharesSeenTest : public testing::Test {
 protected:
  SharesSeenTest() { inventory_.SetFacts("acme", {device::testing::AcmeDevice(0, 1)}, "", {}); }

  std::string Seen(const base::Result<Checkpoint>& checkpoint) {
    return SharesSeen(*ledger_.Get(), *inventory_.published().Get(), checkpoint);
  }

  node::inventory::Inventory inventory_;
  node::ledger::Ledger ledger_;
};

TEST_F(SharesSeenTest, WholeDevicesAndOthersSharesAreNone) {
  EXPECT_EQ(Seen(Checkpoint{.entries = {{"uid", "main", "acme.com/gpu", {"G0"}}},
                            .registered = {{"acme.com/gpu", {"G0"}}}}),
            "");
  EXPECT_EQ(Seen(Checkpoint{.entries = {}, .registered = {{"other.com/card", {"C7::1"}}}}), "");
  EXPECT_EQ(Seen(Error(Code::kNotFound, "no checkpoint yet")), "");
}

TEST_F(SharesSeenTest, TheKubeletsCheckpointHasThem) {
  EXPECT_THAT(Seen(Checkpoint{.entries = {}, .registered = {{"acme.com/gpu", {"G0::1"}}}}),
              HasSubstr("share G0::1 of acme.com/gpu"));
  EXPECT_THAT(
      Seen(Checkpoint{.entries = {{"uid", "main", "acme.com/gpu", {"G0::2"}}}, .registered = {}}),
      HasSubstr("G0::2"));
}

TEST_F(SharesSeenTest, ACheckpointThatCannotBeReadMayHaveThem) {
  EXPECT_THAT(Seen(Error(Code::kInvalidArgument, "1:1: half")),
              HasSubstr("cannot read the kubelet's checkpoint (1:1: half)"));
}

TEST_F(SharesSeenTest, ALeaseThatWasTakenOverShowsThem) {
  node::ledger::Lease lease;
  lease.id = "k-1";
  lease.allocator = api::kKubeletAllocator;
  lease.slots = {node::ledger::WithShape({"G0::3", "G0", "", {}})};
  lease.namespace_name = "ml";
  lease.pod = "train";
  ASSERT_TRUE(ledger_.Add(lease).ok());
  EXPECT_EQ(Seen(Checkpoint{}), "pod ml/train holds the share G0::3");
}

}  // namespace
}  // namespace penstock::adapter::kubelet
