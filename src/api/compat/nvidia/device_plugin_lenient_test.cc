// Tests files that NVIDIA's device plugin accepts although they do not match its documentation:
// each form occurs in public repositories. The agent accepts them, too, with a remark about what it
// ignores.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/compat/nvidia/device_plugin.h"

namespace penstock::api::compat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

base::Result<Translation> ReadLeniently(const std::string& text, const NodeConfig& base = {}) {
  return TranslateDevicePlugin(text, "config.yaml", {}, base, base::ReadingMode::kLenient);
}

std::string StrictErrorOf(const std::string& text) {
  const auto translation = TranslateDevicePlugin(text, "config.yaml", {}, {});
  return translation.ok() ? "" : translation.error().message();
}

SharingRule SlicedRule(int replicas) {
  return {
      .resource = "nvidia.com/gpu", .strategy = ShareStrategy::kTimeSlicing, .replicas = replicas};
}

/// Four shares of each GPU in a form that the strict reading refuses, and the remarks about it.
struct Shape {
  const char* name;
  const char* text;
  std::vector<std::string> remarks;  ///< the beginning of each remark
};

class LenientDevicePluginConfig : public testing::TestWithParam<Shape> {};

TEST_P(LenientDevicePluginConfig, SharesAsThePluginDoesAndSaysWhatWasPassedOver) {
  const Shape& shape = GetParam();
  EXPECT_THAT(StrictErrorOf(shape.text), HasSubstr("config.yaml:"));
  const auto translation = ReadLeniently(shape.text);
  ASSERT_TRUE(translation.ok()) << translation.error().message();
  EXPECT_THAT(translation->config.sharing.rules, ElementsAre(SlicedRule(4)));
  ASSERT_EQ(translation->remarks.size(), shape.remarks.size())
      << testing::PrintToString(translation->remarks);
  for (std::size_t i = 0; i < shape.remarks.size(); ++i)
    EXPECT_THAT(translation->remarks[i], StartsWith(shape.remarks[i]));
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, LenientDevicePluginConfig,
    testing::Values(
        Shape{"UnknownKey",
              "version: v1\nsharing: {timeSlicing: {maxShares: 4, resources: [{name: "
              "nvidia.com/gpu, replicas: 4}]}}\n",
              {"sharing.timeSlicing.maxShares: is unknown and ignored"}},
        Shape{"UnknownSection",
              "version: v1\nnvidia: {driver: 550}\nsharing: {timeSlicing: {resources: [{name: gpu, "
              "replicas: 4}]}}\n",
              {"nvidia: is unknown and ignored (line 2)"}},
        Shape{
            "OtherCase",
            "Version: v1\nSharing: {timeslicing: {RenameByDefault: true, resources: [{name: gpu, "
            "replicas: 4}]}}\n",
            {"Version: is read as \"version\" (line 1)", "Sharing: is read as \"sharing\" (line 2)",
             "sharing.timeslicing: is read as \"timeSlicing\"",
             "sharing.timeSlicing.RenameByDefault: is unknown and ignored; did you mean "
             "\"renameByDefault\"?"}},
        Shape{"OneLevelTooHigh",
              "version: v1\nflags: {deviceListStrategy: envvar}\nsharing: {timeSlicing: "
              "{resources: [{name: gpu, replicas: 4}]}}\n",
              {"flags.deviceListStrategy: is ignored here, as by NVIDIA's plugin; it counts as "
               "flags.plugin.deviceListStrategy (line 2)"}},
        Shape{"StrategyOfOldBlogPosts",
              "sharing: {timeSlicing: {strategy: none, resources: [{name: gpu, replicas: 4}]}}\n",
              {"sharing.timeSlicing.strategy: is ignored"}},
        Shape{"AnchorAndAlias",
              "version: v1\nx-common: &gpu {name: gpu, replicas: 4}\nsharing: {timeSlicing: "
              "{resources: [*gpu]}}\n",
              {"x-common: is unknown and ignored"}},
        Shape{"MergeKey",
              "x-base: &base {name: gpu, replicas: 2}\nsharing: {timeSlicing: {resources: [{<<: "
              "*base, replicas: 4}]}}\n",
              {"x-base: is unknown and ignored"}},
        Shape{"TheSameKeyTwice",
              "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2, replicas: 4}]}}\n",
              {"the key \"replicas\" is given twice; the last one is used"}},
        Shape{"TwoDocuments",
              "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}\n---\nversion: v1\n",
              {"contains more than one document; only the first is used"}},
        Shape{"TheSameResourceTwice",
              "sharing: {timeSlicing: {resources: [{name: gpu, replicas: 2}, {name: gpu, replicas: "
              "4}]}}\n",
              {"sharing.timeSlicing.resources[1]: applies to the same devices as "
               "sharing.timeSlicing.resources[0]; the one with more replicas counts"}},
        Shape{"YesIsABoolean",
              "flags: {failOnInitError: no}\nsharing: {timeSlicing: {resources: [{name: gpu, "
              "replicas: 4}]}}\n",
              {}}),
    [](const auto& shape) { return shape.param.name; });

TEST(LenientDevicePluginConfig, WhatCannotBeHonouredIsRefusedAllTheSame) {
  for (const auto& [text, why] : std::vector<std::pair<std::string, std::string>>{
           {"version: v2\n", "config.yaml:1:10: version: is \"v2\""},
           {"flags: {migStrategy: some}\n",
            "flags.migStrategy: \"some\" is none of none, single, mixed"},
           {"sharing: {timeSlicing: {resources: [{name: gpu, replicas: many}]}}\n",
            "replicas: is a string (many)"},
           {"sharing: {timeSlicing: {resources: [{name: gpu}]}}\n", "replicas is missing"},
           {"sharing: {timeSlicing: {Resources: [{name: gpu, replicas: 4}]}}\n",
            "sharing.timeSlicing.resources is missing"},
           {"sharing: {timeSlicing: {resources: [{name: gpu, Replicas: 4}]}}\n",
            "replicas is missing"},
           {"sharing: 5\n", "sharing: is an integer (5) where a map is expected"},
           {"Flags: {Plugin: {DeviceIDStrategy: serial}}\n",
            "flags.plugin.deviceIDStrategy: \"serial\" is none of uuid, index"},
           {"flags: &f {migStrategy: *f}\n", "an alias refers to a value that contains it"}}) {
    const auto translation = ReadLeniently(text);
    ASSERT_FALSE(translation.ok()) << text;
    EXPECT_THAT(translation.error().message(), HasSubstr(why)) << text;
  }
}

TEST(LenientDevicePluginConfig, ASmallTextWhoseAliasesMakeALargeDocumentIsRefused) {
  std::string laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 10; ++i) {
    const std::string before = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [" + before;
    for (int j = 1; j < 10; ++j) laughs += ", " + before;
    laughs += "]\n";
  }
  EXPECT_THAT(ReadLeniently(laughs).error().message(),
              HasSubstr("more than 100000 keys and values"));

  std::string tower = "a0: &a0 [x]\n";  // each alias one level deeper
  for (int i = 1; i < 100'000; ++i)
    tower += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [*a" + std::to_string(i - 1) +
             "]\n";
  EXPECT_THAT(ReadLeniently(tower).error().message(), HasSubstr("nested too deeply"));
}

TEST(LenientDevicePluginConfig, WhatThePluginReadsAndIgnoresCountsUnlessItIsSaidOtherwise) {
  const std::string text = R"(
resources: {gpus: [{pattern: "*A100*", name: a100}], mig: [{pattern: 1g.5gb, name: small}]}
sharing:
  timeSlicing:
    resources:
    - {name: gpu, rename: shared, devices: [0, 1], replicas: 4}
)";
  const auto extended = ReadLeniently(text);
  ASSERT_TRUE(extended.ok()) << extended.error().message();
  EXPECT_THAT(extended->config.resources, ElementsAre(ResourceRule{"*A100*", "nvidia.com/a100"}));
  SharingRule named = SlicedRule(4);
  named.rename = "nvidia.com/shared";
  named.devices = {"0", "1"};
  EXPECT_THAT(extended->config.sharing.rules, ElementsAre(named));

  NodeConfig as_nvidia;
  as_nvidia.plugin_files = PluginFiles::kAsNvidia;
  const auto theirs = ReadLeniently(text, as_nvidia);
  ASSERT_TRUE(theirs.ok()) << theirs.error().message();
  EXPECT_THAT(theirs->config.resources, IsEmpty());
  EXPECT_THAT(theirs->config.sharing.rules, ElementsAre(SlicedRule(4)));
  EXPECT_THAT(theirs->not_yet, IsEmpty());
  const auto ignored = [](const std::string& key) {
    return StartsWith(key + ": is ignored, as by NVIDIA's plugin");
  };
  EXPECT_THAT(theirs->remarks, ElementsAre(ignored("resources.gpus"), ignored("resources.mig"),
                                           ignored("sharing.timeSlicing.resources[0].rename"),
                                           ignored("sharing.timeSlicing.resources[0].devices")));
  // There, renameByDefault takes precedence over an entry's name.
  const auto renamed = ReadLeniently(
      "sharing: {mps: {renameByDefault: true, resources: [{name: gpu, rename: x, replicas: 2}]}}\n",
      as_nvidia);
  ASSERT_TRUE(renamed.ok());
  EXPECT_EQ(renamed->config.sharing.rules.at(0).rename, "nvidia.com/gpu.shared");
}

}  // namespace
}  // namespace penstock::api::compat
