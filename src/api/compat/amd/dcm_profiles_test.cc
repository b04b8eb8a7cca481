// The configuration of AMD's Device Config Manager, with the wrong profiles of its own example.
#include "api/compat/amd/dcm_profiles.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api::compat {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

DcmProfiles ProfilesOf(const std::string& profiles, const std::string& more = "") {
  auto read = TranslateDcmProfiles("{\"gpu-config-profiles\": {" + profiles + "}" + more + "}",
                                   "config.json");
  EXPECT_TRUE(read.ok()) << read.error().message();
  return read.ok() ? *std::move(read) : DcmProfiles{};
}

std::string One(const std::string& compute, const std::string& memory, const std::string& count) {
  return R"({"computePartition": ")" + compute + R"(", "memoryPartition": ")" + memory +
         R"(", "numGPUsAssigned": )" + count + "}";
}

std::string Profile(const std::string& name, const std::string& rules,
                    const std::string& skipped = "") {
  return "\"" + name + "\": {" +
         (skipped.empty() ? "" : R"("skippedGPUs": {"ids": [)" + skipped + "]}, ") +
         R"("profiles": [)" + rules + "]}";
}

std::string WrongOf(const std::string& profile) {
  const DcmProfiles read = ProfilesOf(profile);
  EXPECT_THAT(read.layouts.layouts, IsEmpty());
  return read.wrong.empty() ? "" : read.wrong.begin()->second.text;
}

TEST(DcmProfiles, TakesGpusInOrderAndLeavesOutThoseSkipped) {
  const DcmProfiles read = ProfilesOf(
      Profile("default", One("CPX", "NPS1", "2") + "," + One("SPX", "NPS1", "4"), "3, 6"));
  ASSERT_EQ(read.layouts.layouts.size(), 1u);
  const Layout& layout = read.layouts.layouts.front();
  EXPECT_EQ(layout.name, "default");
  EXPECT_EQ(layout.total, 8);
  ASSERT_EQ(layout.rules.size(), 2u);
  EXPECT_THAT(layout.rules[0].devices, ElementsAre(0, 1));
  EXPECT_THAT(layout.rules[1].devices, ElementsAre(2, 4, 5, 7));
  EXPECT_EQ(layout.rules[0].modes.at(kComputeMode), "CPX");
  EXPECT_EQ(layout.rules[1].modes.at(kMemoryMode), "NPS1");
}

TEST(DcmProfiles, AWrongProfileSpoilsNoOther) {
  const DcmProfiles read = ProfilesOf(Profile("bad", One("invalid", "NPS1", "8")) + ", " +
                                      Profile("good", One("CPX", "NPS4", "8")));
  EXPECT_THAT(read.layouts.names(), ElementsAre("good"));
  EXPECT_TRUE(read.wrong.at("bad").compute_mode);
  EXPECT_FALSE(read.wrong.at("bad").memory_mode);
  EXPECT_THAT(read.wrong.at("bad").text,
              AllOf(HasSubstr("config.json:1:"),
                    HasSubstr("gpu-config-profiles.bad.profiles[0].computePartition: is "
                              "\"invalid\"; it can be SPX, DPX, TPX, QPX, CPX")));
}

TEST(DcmProfiles, SaysWhatIsWrongWithEachProfileOfDcmsExample) {
  EXPECT_EQ(ProfilesOf(Profile("invalidgpucount",
                               One("CPX", "NPS1", "2") + "," + One("SPX", "NPS1", "4"), "3, 4, 7"))
                .layouts.layouts.front()
                .total_by,
            "numGPUsAssigned: 2 + 4, skippedGPUs.ids: 3")
      << "how many GPUs there are is not known here";
  EXPECT_THAT(WrongOf(Profile("invalmemorytype", One("CPX", "invalid", "4"))),
              HasSubstr("profiles[0].memoryPartition: is \"invalid\"; it can be NPS1, NPS2"));
  EXPECT_THAT(WrongOf(Profile("invalmemorytypecombinationNPS1NPS4",
                              One("CPX", "NPS4", "2") + "," + One("SPX", "NPS1", "4"))),
              HasSubstr("profiles[1].memoryPartition: is \"NPS1\", and \"NPS4\" above"));
  EXPECT_THAT(WrongOf(Profile("invalidmissingfields",
                              R"({"computePartition": "CPX", "memoryPartition": "NPS1"})", "3, 4")),
              HasSubstr("profiles[0].numGPUsAssigned"));
  EXPECT_EQ(ProfilesOf(Profile("highgpucount_mostly_invalid", One("CPX", "NPS4", "3543")))
                .layouts.layouts.front()
                .total,
            3543);
}

TEST(DcmProfiles, SaysWhatDcmDoesNotNotice) {
  EXPECT_THAT(WrongOf(Profile("p", One("CPX", "NPS1", "7"), "1, 1")), HasSubstr("is there twice"));
  EXPECT_THAT(WrongOf(Profile("p", One("CPX", "NPS1", "7"), "9")),
              HasSubstr("ids has 9, and the profile is for 8 GPUs, 0 to 7"));
  EXPECT_THAT(WrongOf(Profile("p", One("CPX", "NPS1", "7"), "-1")), HasSubstr("no index of a GPU"));
  EXPECT_THAT(WrongOf(Profile("p", One("CPX", "NPS1", "5000"))), HasSubstr("numGPUsAssigned"));
  EXPECT_THAT(WrongOf(Profile("p", "")), HasSubstr("profiles: says nothing"));
  EXPECT_THAT(WrongOf(Profile("p", One("CPX", "NPS1", "0"))), HasSubstr("assigns no GPU"));
  EXPECT_THAT(WrongOf("\"p\": {}"), HasSubstr("profiles: says nothing"));
  EXPECT_THAT(WrongOf("\"p\": 3"), HasSubstr("gpu-config-profiles.p"));
}

TEST(DcmProfiles, RefusesAFileThatIsNone) {
  const auto error = [](const std::string& text) {
    const auto read = TranslateDcmProfiles(text, "config.json");
    return read.ok() ? "" : read.error().message();
  };
  EXPECT_THAT(error("{"), HasSubstr("config.json:1:"));
  EXPECT_THAT(error(""), HasSubstr("config.json"));
  EXPECT_THAT(error("{}"), HasSubstr("gpu-config-profiles: has no profiles"));
  EXPECT_THAT(error(R"({"gpu-config-profiles": {"a": {}, "a": {}}})"), HasSubstr("a"));
  EXPECT_THAT(error(R"({"gpu-config-profiles": []})"), HasSubstr("gpu-config-profiles"));
}

TEST(DcmProfiles, NamesTheServicesThatAreStoppedWithOrWithoutTheirSuffix) {
  const DcmProfiles read = ProfilesOf(
      Profile("p", One("CPX", "NPS1", "8")),
      R"(, "gpuClientSystemdServices": {"names": ["amd-metrics-exporter", "gpuagent.service"]})");
  EXPECT_THAT(read.services, ElementsAre("amd-metrics-exporter.service", "gpuagent.service"));
  EXPECT_THAT(read.remarks, IsEmpty());
}

TEST(DcmProfiles, RemarksOnWhatHasNoEffect) {
  const DcmProfiles read =
      ProfilesOf(Profile("p", One("CPX", "NPS1", "8")),
                 R"(, "gpuClientSystemdServices": {"names": ["../x", 3, "x"]}, "y": 1)");
  EXPECT_THAT(read.services, ElementsAre("x.service"));
  EXPECT_THAT(read.remarks,
              testing::Contains(AllOf(HasSubstr("gpuClientSystemdServices.names[0]: \"../x\""),
                                      HasSubstr("it has no effect"))));
  EXPECT_THAT(read.remarks,
              testing::Contains(HasSubstr("gpuClientSystemdServices.names[1]: is an integer")));
  EXPECT_THAT(read.remarks, testing::Contains(HasSubstr("y")));
}

}  // namespace
}  // namespace penstock::api::compat
