#include "operator/left_operands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::cluster {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

TEST(LeftOperands, NothingIsLeftWithoutAName) {
  EXPECT_EQ(DescribeLeft({}, "gpus").text, "");
  EXPECT_FALSE(DescribeLeft({}, "gpus").interferes);
}

TEST(LeftOperands, OnlyThoseThatReadDoNotInterfere) {
  EXPECT_FALSE(
      DescribeLeft({"nvidia-dcgm", "nvidia-dcgm-exporter", "nvidia-node-status-exporter"}, "gpus")
          .interferes);
  for (const char* name : {"nvidia-device-plugin-daemonset", "nvidia-mig-manager",
                           "nvidia-driver-daemonset", "of-a-later-release"})
    EXPECT_TRUE(DescribeLeft({"nvidia-dcgm", name}, "gpus").interferes) << name;
}

TEST(LeftOperands, ManyAreRemovedByOneCommandAfterAnother) {
  std::vector<std::string> names;
  for (int i = 0; i < 23; ++i) names.push_back("driver-" + std::to_string(100 + i));
  const std::string text = DescribeLeft(names, "gpus").text;
  EXPECT_THAT(text, HasSubstr("`kubectl delete daemonset -n gpus driver-100 driver-101 "));
  EXPECT_THAT(text, EndsWith(" driver-119` removes them (20 of 23)"));
}

}  // namespace
}  // namespace penstock::cluster
