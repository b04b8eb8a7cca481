// Tables of valid and invalid labels under Kubernetes' rules.
#include "api/labels.h"

#include <string>

#include <gtest/gtest.h>

namespace penstock::api {
namespace {

TEST(LabelNames, AreKubernetesOwn) {
  const std::string long_name(63, 'a');
  for (const std::string& key : {std::string("nvidia.com/gpu.count"),
                                 std::string("feature.node.kubernetes.io/cpu-cpuid.AVX2"),
                                 std::string("a"), "x.y/" + long_name})
    EXPECT_TRUE(IsLabelKey(key)) << key;
  for (const std::string& key :
       {std::string(""), std::string("/a"), std::string("nvidia.com/"), std::string("Nvidia.com/a"),
        std::string("a/b/c"), std::string("a..b/c"), std::string("-a/b"), std::string("a-/b"),
        std::string("nvidia.com/-a"), std::string("nvidia.com/a "), "x.y/" + long_name + "a",
        std::string(254, 'a') + "/b"})
    EXPECT_FALSE(IsLabelKey(key)) << key;
}

TEST(LabelValues, MayBeEmptyAndHaveNoOddEnds) {
  for (const char* value : {"", "1", "NVIDIA-A100-SXM4-40GB", "6.1.0_x", "a.b"})
    EXPECT_TRUE(IsLabelValue(value)) << value;
  for (const char* value : {"-a", "a-", ".", "a b", "a+b", "ä"})
    EXPECT_FALSE(IsLabelValue(value)) << value;
  EXPECT_FALSE(IsLabelValue(std::string(64, 'a')));
}

TEST(LabelValues, AreCutRatherThanWrong) {
  EXPECT_EQ(FitLabelValue("as-it-is"), "as-it-is");
  EXPECT_EQ(FitLabelValue(""), "");
  EXPECT_EQ(FitLabelValue("-To-be-filled-by-O.E.M."), "To-be-filled-by-O.E.M");
  EXPECT_EQ(FitLabelValue(std::string(62, 'a') + "--b"), std::string(62, 'a'))
      << "cut within the dashes";
  EXPECT_EQ(FitLabelValue(std::string(80, 'a')), std::string(63, 'a'));
  EXPECT_EQ(FitLabelValue("a b"), std::nullopt);
  EXPECT_EQ(FitLabelValue("..."), std::nullopt);
}

}  // namespace
}  // namespace penstock::api
