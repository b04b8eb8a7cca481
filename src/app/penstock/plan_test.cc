#include "app/penstock/plan.h"

#include <gtest/gtest.h>

namespace penstock::app {
namespace {

TEST(PlanShown, SaysThatNothingWouldChange) { EXPECT_EQ(ShowPlan({}, {}), "Nothing would change.\n"); }

TEST(PlanShown, ListsKeysResourcesAndLabelsWithWhenAndWhoHolds) {
  const api::Plan plan{.changes = {{"labels.timestamp", "true", "false", api::Effect::kNow}},
                       .resources = {{"kubelet", "nvidia.com/gpu", 8, 7, api::Effect::kRestart, {"pod ml/train-0"}},
                                     {"local", "nvidia.com/gpu", 0, 1, api::Effect::kRestart, {}}},
                       .labels = {{"nvidia.com/gfd.timestamp", "1", std::nullopt, api::Effect::kNow}},
                       .not_yet = {"flags.migStrategy: no"},
                       .remarks = {"flags.gfd.oneshot: stays"}};
  EXPECT_EQ(ShowPlan(plan, {}),
            "KEY               FROM  TO     EFFECT\n"
            "labels.timestamp  true  false  now\n"
            "\n"
            "RESOURCE        DOOR     BEFORE  AFTER  EFFECT   HELD BY\n"
            "nvidia.com/gpu  kubelet  8       7      restart  pod ml/train-0\n"
            "nvidia.com/gpu  local    0       1      restart  -\n"
            "\n"
            "LABEL                     BEFORE  AFTER  EFFECT\n"
            "nvidia.com/gfd.timestamp  1       -      now\n"
            "not yet: flags.migStrategy: no\n"
            "remark: flags.gfd.oneshot: stays\n");
}

}  // namespace
}  // namespace penstock::app
