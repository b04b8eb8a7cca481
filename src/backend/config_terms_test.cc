// Tests that configurations may name all that the product's vendors have.
#include "backend/config_terms.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/config/node_config.h"

namespace penstock::backend {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

std::string WithRule(const std::string& rule) {
  const auto read = api::ParseNodeConfig(
      "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\nhealth: {policy: [{" + rule + "}]}\n",
      "f", ConfigTerms());
  return read.ok() ? "" : read.error().message();
}

TEST(ConfigTerms, HaveTheKindsOfEvidenceThatUsersMayName) {
  // As they were before each vendor had its own: what users wrote stays valid.
  EXPECT_THAT(
      WithRule("kind: none, action: warn"),
      HasSubstr("\"none\" is none of xid, sxid, recovery-action, unavailable, lost, "
                "reset-required, remap-pending, remap-failure, ecc-uncorrectable, poison, ras, "
                "ras-uncorrectable, ras-deferred, pages-pending, pages-failed, in-reset, "
                "partitions-missing, fatal-error, uncorrectable-error, poison-consumed, "
                "hardware-error, reset-begun, reset-done, reset-failed, memory-lost, "
                "scheduler-timeout, ring-timeout, fence-fallback, wedged"));
}

TEST(ConfigTerms, AreThoseOfTheVendors) {
  EXPECT_THAT(ConfigTerms().vendors, ElementsAre("nvidia", "amd"));
  EXPECT_EQ(ConfigTerms().node_label, "nvidia.com/device-plugin.config");
  EXPECT_THAT(ConfigTerms().former_keys, SizeIs(5));
}

TEST(ConfigTerms, HaveTheCodesOfEachKind) {
  EXPECT_EQ(WithRule("codes: [1, 999], action: warn"), "") << "XIDs";
  EXPECT_THAT(WithRule("codes: [0], action: warn"),
              HasSubstr("\"0\" is not a code of xid, which are numbers from 1 to 999"));
  EXPECT_EQ(WithRule("kind: sxid, codes: [1, 99999], action: warn"), "");
  EXPECT_THAT(WithRule("kind: sxid, codes: [100000], action: warn"),
              HasSubstr("\"100000\" is not a code of sxid, which are numbers"));
  EXPECT_EQ(WithRule("kind: recovery-action, codes: [0, 99], action: warn"), "");
  EXPECT_THAT(WithRule("kind: recovery-action, codes: [100], action: warn"),
              HasSubstr("\"100\" is not a code of recovery-action"));
  int kinds = 0;
  for (const api::EvidenceTerm& term : ConfigTerms().evidence) {
    if (term.kind == "xid" || term.kind == "sxid" || term.kind == "recovery-action") continue;
    ++kinds;
    EXPECT_EQ(WithRule("kind: " + term.kind + ", codes: [0, 999999999], action: warn"), "");
    EXPECT_THAT(WithRule("kind: " + term.kind + ", codes: [-1], action: warn"),
                HasSubstr("\"-1\" is not a code of " + term.kind));
    EXPECT_THAT(WithRule("kind: " + term.kind + ", codes: [1000000000], action: warn"),
                HasSubstr("\"1000000000\" is not a code of " + term.kind));
  }
  EXPECT_EQ(kinds, 27) << "one of them of both vendors";
}

}  // namespace
}  // namespace penstock::backend
