// Tests what AMD_VISIBLE_DEVICES means.
#include "hook/runtime/amd/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::hook::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

base::Result<AmdRequest> Read(const std::string& value) {
  RuntimeFacts facts;
  facts.environment["AMD_VISIBLE_DEVICES"] = value;
  return ReadAmdRequest(facts);
}

std::string WhyNot(const std::string& value) {
  const auto request = Read(value);
  return request.ok() ? "" : request.error().message();
}

TEST(AmdRequest, IndicesRangesAndIdsAreNamedOnce) {
  const auto request = Read("1, 0-2,0xE3AA1C5BD7B5F051,0xe3aa1c5bd7b5f051,0x1");
  ASSERT_TRUE(request.ok()) << request.error().message();
  EXPECT_THAT(request->devices, ElementsAre("amd.com/gpu=1", "amd.com/gpu=0", "amd.com/gpu=2"));
  EXPECT_THAT(request->ids, ElementsAre("GPU-e3aa1c5bd7b5f051", "GPU-0000000000000001"));
  EXPECT_THAT(Read("ALL")->devices, ElementsAre("amd.com/gpu=all"));
}

TEST(AmdRequest, NothingIsRequestedByVoidNoneAndNothing) {
  for (const char* value : {"", " ", "void", "none"}) EXPECT_TRUE(Read(value)->Empty()) << value;
  EXPECT_TRUE(ReadAmdRequest({})->Empty());
}

TEST(AmdRequest, WhatIsNoDeviceIsRefused) {
  for (const char* value : {"GPU", "3-1", "0-", "-1", "0-99999999", "18446744073709551616", "0x",
                            "0x1ffffffffffffffff", "0xg", "all,0", "1,,2", "nvidia.com/gpu=0"})
    EXPECT_THAT(WhyNot(value), HasSubstr("is not a device")) << value;
  EXPECT_THAT(WhyNot("0\n\x1b[2J"), HasSubstr("\"0??[2J\"")) << "it reaches a terminal";
}

TEST(AmdRequest, AListWithoutEndIsRefused) {
  std::string ranges = "0-1023";
  for (int n = 1; n < 1024; ++n) ranges += ",0-1023";
  EXPECT_EQ(Read(ranges)->devices.size(), 1024u);
  EXPECT_THAT(WhyNot(ranges + ",0x1"), HasSubstr("more than 1024 words"));
}

TEST(AmdRequest, AnIdIsTheGpuOrItsPartitions) {
  const std::vector<api::cdi::Registry::Listed> known = {
      {"amd.com/gpu=0", "f"},
      {"amd.com/gpu=GPU-00000000000000aa", "f"},
      {"amd.com/gpu=GPU-00000000000000ab", "f"},
      {"amd.com/gpu=GPU-00000000000000ab-0", "f"},
      {"amd.com/gpu=GPU-00000000000000ab-1", "f"}};
  EXPECT_THAT(*ResolveAmd(*Read("0xaa"), known), ElementsAre("amd.com/gpu=GPU-00000000000000aa"));
  EXPECT_THAT(*ResolveAmd(*Read("0,0xab"), known),
              ElementsAre("amd.com/gpu=0", "amd.com/gpu=GPU-00000000000000ab-0",
                          "amd.com/gpu=GPU-00000000000000ab-1"));
  EXPECT_THAT(ResolveAmd(*Read("0xac"), known).error().message(),
              HasSubstr("GPU-00000000000000ac, which no CDI specification names"));
  EXPECT_THAT(*ResolveAmd({}, known), IsEmpty());
}

}  // namespace
}  // namespace penstock::hook::runtime
