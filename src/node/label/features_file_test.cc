#include "node/label/features_file.h"

#include <gtest/gtest.h>

namespace penstock::node::label {
namespace {

TEST(FeaturesText, HasALineForEachLabel) {
  EXPECT_EQ(FeaturesText({}), "");
  EXPECT_EQ(FeaturesText({{"nvidia.com/gpu.count", "8"}, {"nvidia.com/cuda.driver.rev", ""}}),
            "nvidia.com/cuda.driver.rev=\nnvidia.com/gpu.count=8\n");
}

TEST(FeaturesText, StaysWithinWhatNfdReads) {
  LabelSet labels;
  for (int i = 10000; i < 20000; ++i) labels["example.com/label-" + std::to_string(i)] = "true";
  const std::string text = FeaturesText(labels);
  EXPECT_LE(text.size(), 65536u);
  EXPECT_GT(text.size(), 65000u);
  EXPECT_TRUE(text.ends_with("=true\n"));
}

}  // namespace
}  // namespace penstock::node::label
