#include "node/health/policy.h"

#include <gtest/gtest.h>

namespace penstock::node::health {
namespace {

using device::Severity;

// The equivalent of DP_ENABLE_HEALTHCHECKS: it must not lower the severity of an error.
TEST(HealthPolicy, AtLeastDrainDrainsWhatIsMilderAndLeavesWhatIsWorse) {
  const std::vector<api::HealthRule> policy = {
      {.kind = "xid", .codes = {}, .action = "ignore"},
      {.kind = "xid", .codes = {13, 48, 79}, .action = "at-least-drain"}};
  EXPECT_EQ(Apply(policy, "xid", 13, Severity::kIgnore), Severity::kDrain);
  EXPECT_EQ(Apply(policy, "xid", 48, Severity::kReset), Severity::kReset);
  EXPECT_EQ(Apply(policy, "xid", 79, Severity::kGone), Severity::kGone);
  EXPECT_EQ(Apply(policy, "xid", 94, Severity::kReset), Severity::kIgnore);
  EXPECT_EQ(Apply(policy, "lost", 13, Severity::kGone), Severity::kGone);
}

}  // namespace
}  // namespace penstock::node::health
