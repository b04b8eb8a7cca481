#include "api/plan.h"

#include <gtest/gtest.h>

#include "api/testing/reference.h"

namespace penstock::api {
namespace {

Plan Sample() {
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

TEST(Plan, ReadsBackWhatItWrote) {
  const auto plan = ParsePlan(ToJson(Sample()));
  ASSERT_TRUE(plan.ok()) << plan.error().message();
  EXPECT_EQ(*plan, Sample());
  EXPECT_EQ(*ParsePlan(ToJson(Plan{})), Plan{});
}

TEST(Plan, RefusesWhatIsNone) {
  for (const char* text : {"", "{}", "[]", R"({"changes": {}, "resources": [], "labels": []})",
                           R"({"changes": [1], "resources": [], "labels": []})"})
    EXPECT_FALSE(ParsePlan(text).ok()) << text;
}

TEST(Plan, TheReferenceDocumentsEveryKey) {
  ExpectToDocument("plan.md", nlohmann::json::parse(ToJson(Sample())));
}

}  // namespace
}  // namespace penstock::api
