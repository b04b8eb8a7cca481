#include "app/penstock/local/plan.h"

#include <gtest/gtest.h>

namespace penstock::app {
namespace {

TEST(PlanShown, SaysThatNothingWouldChange) {
  EXPECT_EQ(ShowPreview({}, {}), "Nothing would change.\n");
}

TEST(PlanShown, ListsKeysResourcesAndLabelsWithWhenAndWhoHolds) {
  const api::ConfigPreview preview{
      .changes = {{"labels.timestamp", "true", "false", api::Effect::kNow}},
      .resources = {{"kubelet", "nvidia.com/gpu", 8, 7, api::Effect::kRestart, {"pod ml/train-0"}},
                    {"local", "nvidia.com/gpu", 0, 1, api::Effect::kRestart, {}}},
      .labels = {{"nvidia.com/gfd.timestamp", "1", std::nullopt, api::Effect::kNow}},
      .not_yet = {"flags.migStrategy: no"},
      .remarks = {"flags.gfd.oneshot: stays"}};
  EXPECT_EQ(ShowPreview(preview, {}),
            "KEY               FROM  TO     EFFECT\n"
            "labels.timestamp  true  false  now\n"
            "\n"
            "RESOURCE        ALLOCATOR  BEFORE  AFTER  EFFECT   HELD BY\n"
            "nvidia.com/gpu  kubelet    8       7      restart  pod ml/train-0\n"
            "nvidia.com/gpu  local      0       1      restart  -\n"
            "\n"
            "LABEL                     BEFORE  AFTER  EFFECT\n"
            "nvidia.com/gfd.timestamp  1       -      now\n"
            "not supported yet: flags.migStrategy: no\n"
            "remark: flags.gfd.oneshot: stays\n");
}

TEST(PlanShown, ExplainsWhichDevicesARequestWouldGet) {
  api::ConfigPreview preview;
  for (int i = 0; i < 4; ++i)
    preview.devices.push_back({"kubelet", "nvidia.com/gpu", "GPU-" + std::to_string(i), i,
                               "NVIDIA L40S", 1, i < 3 ? 1u : 0u, i < 3 ? "" : "XID 79"});
  preview.choices = {
      {"kubelet", "nvidia.com/gpu", 1, {"GPU-2"}, 0, 410, true, {}, ""},
      {"kubelet",
       "nvidia.com/gpu",
       2,
       {"GPU-0", "GPU-1"},
       410,
       0,
       true,
       {{"4 fabric links", {"0-1"}}},
       ""},
      {"kubelet",
       "nvidia.com/gpu",
       3,
       {"GPU-0", "GPU-1", "GPU-2"},
       430,
       0,
       false,
       {{"4 fabric links", {"0-1"}}, {"across NUMA nodes", {"0-2", "1-2"}}},
       ""},
      {"kubelet", "nvidia.com/gpu", 4, {}, 0, 0, true, {}, "3 of 4 are free; GPU 3: XID 79"}};
  EXPECT_EQ(ShowPreview(preview, {}),
            "Nothing would change.\n"
            "\n"
            "GPU  MODEL        RESOURCE        ALLOCATOR  FREE    WHY NOT\n"
            "0    NVIDIA L40S  nvidia.com/gpu  kubelet    1 of 1  -\n"
            "1    NVIDIA L40S  nvidia.com/gpu  kubelet    1 of 1  -\n"
            "2    NVIDIA L40S  nvidia.com/gpu  kubelet    1 of 1  -\n"
            "3    NVIDIA L40S  nvidia.com/gpu  kubelet    0 of 1  XID 79\n"
            "\n"
            "A request for nvidia.com/gpu now (allocator kubelet):\n"
            "REQUESTED  GPUS   SCORE  SCORE LEFT  WHY\n"
            "1          2      0      410         -\n"
            "2          0,1    410    0           4 fabric links\n"
            "3          0,1,2  430    0           4 fabric links: 0-1; across NUMA nodes: 0-2 1-2; "
            "a good set; there are too many to compare all\n"
            "4          none   -      -           3 of 4 are free; GPU 3: XID 79\n");
}

TEST(PlanShown, PartsHaveTheirNumbers) {
  api::ConfigPreview preview;
  preview.devices = {{.allocator = "local",
                      .resource = "nvidia.com/mig-1g.5gb",
                      .id = "MIG-1",
                      .model = "NVIDIA A100",
                      .slots = 1,
                      .free = 1,
                      .number = "0:1"}};
  preview.choices = {{"local", "nvidia.com/mig-1g.5gb", 1, {"MIG-1"}, 0, 0, true, {}, ""}};
  const std::string text = ShowPreview(preview, {});
  EXPECT_NE(text.find("\n0:1  NVIDIA A100  nvidia.com/mig-1g.5gb  local "), std::string::npos)
      << text;
  EXPECT_NE(text.find("\n1          0:1   0 "), std::string::npos) << text;
}

}  // namespace
}  // namespace penstock::app
