#include "device/model.h"

#include <gtest/gtest.h>

namespace penstock::device {
namespace {

TEST(PciAddress, IsReadInEveryFormThatKernelsAndLibrariesWrite) {
  const PciAddress seven{0, 7, 0, 0};
  EXPECT_EQ(ParsePciAddress("0000:07:00.0"), seven);
  EXPECT_EQ(ParsePciAddress("00000000:07:00.0"), seven);
  EXPECT_EQ(ParsePciAddress("0000:07:00"), seven);
  EXPECT_EQ(ToString(seven), "0000:07:00.0");
  EXPECT_EQ(ToString(*ParsePciAddress("000B:BD:1F.7")), "000b:bd:1f.7");
  for (const char* wrong : {"", "07:00.0", "0000:07:00.8", "0000:07:20.0", "0000:100:00.0",
                            "0000:07:00.0.0", "x:07:00.0", "0000:07:"})
    EXPECT_EQ(ParsePciAddress(wrong), std::nullopt) << wrong;
}

TEST(ModelMatches, WithOrWithoutTheFirstWord) {
  EXPECT_TRUE(ModelMatches("A100*", "NVIDIA A100-SXM4-40GB"));
  EXPECT_TRUE(ModelMatches("nvidia a100*", "NVIDIA A100-SXM4-40GB"));
  EXPECT_TRUE(ModelMatches("A100*", "A100-SXM4-40GB"));
  EXPECT_FALSE(ModelMatches("SXM4*", "NVIDIA A100-SXM4-40GB"));
  EXPECT_FALSE(ModelMatches("", "NVIDIA A100-SXM4-40GB"));
}

}  // namespace
}  // namespace penstock::device
