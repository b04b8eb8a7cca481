#include "api/allocators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/config/node_config.h"
#include "api/report.h"

namespace penstock::api {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

base::Result<NodeConfig> Parse(const std::string& allocators) {
  return ParseNodeConfig(
      "apiVersion: penstock.io/v1alpha1\nkind: NodeConfig\nallocators: {" + allocators + "}\n",
      "f");
}

TEST(Allocators, HaveTheColumnsThatOtherCodeAsks) {
  const Allocator& kubelet = FindAllocator("kubelet");
  EXPECT_TRUE(kubelet.is_for_pods() && kubelet.advertises && kubelet.counts_itself &&
              kubelet.needs_kubelet && !kubelet.cuts_devices);
  EXPECT_EQ(kubelet.condition, "KubeletDoor");
  const Allocator& local = FindAllocator("local");
  EXPECT_EQ(local.held_by, HeldBy::kProcesses);
  EXPECT_TRUE(local.cuts_devices && !local.advertises && !local.counts_itself &&
              !local.needs_kubelet);
  EXPECT_EQ(&CuttingAllocator(), &local);
  const Allocator& other = FindAllocator("slurm");
  EXPECT_EQ(other.held_by, HeldBy::kUnknown);
  EXPECT_TRUE(other.name.empty() && other.enabled == nullptr && !other.counts_itself);
}

TEST(Allocators, AreEnabledAndAssignedToInTheConfiguration) {
  for (const Allocator& row : Allocators()) {
    const std::string name(row.name), off = name + ": {enabled: off}",
                                      rule = "assign: [{allocator: " + name + "}]";
    const auto config = Parse(off);
    ASSERT_TRUE(config.ok()) << config.error().message();
    for (const Allocator& one : Allocators())
      EXPECT_EQ((*config).*one.enabled, one.name == name ? Switch::kOff : Switch::kAuto);
    EXPECT_TRUE(Parse(rule).ok());
    const auto closed = Parse(off + ", " + rule);
    ASSERT_FALSE(closed.ok());
    EXPECT_THAT(closed.error().message(), HasSubstr("disabled (" + EnabledKey(row) + ")"));
  }
}

TEST(Allocators, HaveWordsForNone) {
  EXPECT_THAT(AllocatorWords(), ElementsAre("kubelet", "local", "none"));
  EXPECT_THAT(AllocatorWords({kConfiguredAllocator}),
              ElementsAre("kubelet", "local", "none", "default"));
  for (const std::string name : {"", "local"}) EXPECT_EQ(FromWord(ToWord(name)), name);
  EXPECT_EQ(ToWord(""), "none");
}

TEST(Allocators, TheirReportsAreFoundByNameOrByWhatTheyAdvertise) {
  Report report;
  EXPECT_EQ(AdvertisingAllocator(report), nullptr);
  for (const Allocator& row : Allocators())
    report.allocators.insert(report.allocators.begin(), {.name = std::string(row.name)});
  for (const Allocator& row : Allocators())
    EXPECT_EQ(AllocatorIn(report, row.name)->name, row.name);
  EXPECT_EQ(AllocatorIn(report, "cluster"), nullptr);
  EXPECT_EQ(AdvertisingAllocator(report)->name, "kubelet");
}

}  // namespace
}  // namespace penstock::api
