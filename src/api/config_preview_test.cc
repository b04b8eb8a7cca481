#include "api/config_preview.h"

#include <gtest/gtest.h>

#include "api/testing/reference.h"

namespace penstock::api {
namespace {

ConfigPreview SamplePreview() {
  return {.origin = "file /etc/penstock/node.yaml",
          .changes = {{"labels.timestamp", "true", "false", Effect::kNow},
                      {"allocators.assign", "[]", "[{allocator: none}]", Effect::kRestart}},
          .resources = {{"kubelet", "nvidia.com/gpu", 8, 7, Effect::kRestart, {"pod ml/train-0"}}},
          .labels = {{"nvidia.com/gfd.timestamp", "1", std::nullopt, Effect::kNow},
                     {"x", std::nullopt, "y", Effect::kRestart}},
          .not_yet = {"flags.migStrategy: \"mixed\" is not supported yet"},
          .remarks = {"flags.gfd.oneshot: the agent keeps running"},
          .devices = {{"kubelet", "nvidia.com/gpu", "GPU-1", 1, "NVIDIA H200", 4, 3,
                       "held by ml/train-0", "0:1"}},
          .choices = {{"kubelet",
                       "nvidia.com/gpu",
                       2,
                       {"GPU-0", "GPU-1"},
                       1840,
                       400,
                       false,
                       {{"18 fabric links", {"0-1"}}},
                       ""},
                      {"kubelet", "nvidia.com/gpu", 3, {}, 0, 0, true, {}, "3 requested, 2 free"}}};
}

TEST(ConfigPreview, ReadsBackWhatItWrote) {
  const auto preview = ParseConfigPreview(ToJson(SamplePreview()));
  ASSERT_TRUE(preview.ok()) << preview.error().message();
  EXPECT_EQ(*preview, SamplePreview());
  EXPECT_EQ(*ParseConfigPreview(ToJson(ConfigPreview{})), ConfigPreview{});
}

TEST(ConfigPreview, RefusesWhatIsNone) {
  for (const char* text : {"", "{}", "[]", R"({"changes": {}, "resources": [], "labels": []})",
                           R"({"changes": [1], "resources": [], "labels": []})"})
    EXPECT_FALSE(ParseConfigPreview(text).ok()) << text;
}

TEST(ConfigPreview, TheReferenceDocumentsEveryKey) {
  ExpectToDocument("plan.md", nlohmann::json::parse(ToJson(SamplePreview())));
}

}  // namespace
}  // namespace penstock::api
