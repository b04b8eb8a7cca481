#include "api/compat/nvidia/mig_checkpoint.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api::compat {
namespace {

using ::testing::HasSubstr;

// As Go's encoding/json writes mig-parted's structs.
constexpr char kFile[] =
    R"({"Version":"v1","MigState":{"Devices":[)"
    R"({"UUID":"GPU-a","MigMode":1,"GpuInstances":[)"
    R"({"ProfileID":2,"Placement":{"Start":4,"Size":4},"ComputeInstances":[{"ProfileID":0,"EngProfileID":0},{"ProfileID":1,"EngProfileID":0}]},)"
    R"({"ProfileID":0,"Placement":{"Start":0,"Size":1},"ComputeInstances":null}]},)"
    R"({"UUID":"GPU-b","MigMode":0,"GpuInstances":null}]}})";

std::string CheckpointProblems(const std::string& text) {
  const auto read = ReadMigCheckpoint(text, "f");
  return read.ok() ? "" : read.error().message();
}

std::string Gpus(const std::string& gpus) {
  return R"({"Version": "v1", "MigState": {"Devices": [)" + gpus + "]}}";
}

TEST(MigCheckpoint, WritesWhatItReads) {
  const auto checkpoint = ReadMigCheckpoint(kFile, "f");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message();
  const MigCheckpoint expected{
      {{"GPU-a", true, {{2, 4, 4, {{0, 0}, {1, 0}}}, {0, 0, 1, {}}}}, {"GPU-b", false, {}}}};
  EXPECT_EQ(*checkpoint, expected);
  EXPECT_EQ(WriteMigCheckpoint(*checkpoint), kFile);
}

TEST(MigCheckpoint, HasThePlacesOfComputeInstances) {
  std::string placed = kFile;
  for (const auto& [profile, at] : {std::pair(0, 2), std::pair(1, 0)}) {
    const std::string one = "{\"ProfileID\":" + std::to_string(profile) + ",\"EngProfileID\":0";
    placed.insert(placed.find(one) + one.size(), ",\"Placement\":{\"Start\":" + std::to_string(at) +
                                                     ",\"Size\":" + std::to_string(profile + 1) +
                                                     "}");
  }
  const auto checkpoint = ReadMigCheckpoint(placed, "f");
  ASSERT_TRUE(checkpoint.ok()) << checkpoint.error().message();
  using Computes = std::vector<MigCheckpoint::ComputeInstance>;
  EXPECT_EQ(
      checkpoint->gpus[0].instances[0].compute_instances,
      (Computes{{0, 0, MigCheckpoint::Placement{2, 1}}, {1, 0, MigCheckpoint::Placement{0, 2}}}));
  EXPECT_EQ(WriteMigCheckpoint(*checkpoint), placed);
  for (const char* wrong : {R"({"Start":65,"Size":1})", R"({"Start":0,"Size":0})", R"({"Start":0})",
                            R"({"Start":0,"Size":1,"End":2})", "7"})
    EXPECT_THAT(CheckpointProblems(
                    Gpus(R"({"UUID": "GPU-a", "MigMode": 1, "GpuInstances": [{"ProfileID": 0, )"
                         R"("Placement": {"Start": 0, "Size": 1}, "ComputeInstances": [)"
                         R"({"ProfileID": 0, "EngProfileID": 0, "Placement": )" +
                         std::string(wrong) + "}]}]}")),
                HasSubstr("ComputeInstances[0].Placement"))
        << wrong;
}

TEST(MigCheckpoint, OfAMachineWithoutMig) {
  const std::string none = R"({"Version":"v1","MigState":{"Devices":null}})";
  EXPECT_EQ(WriteMigCheckpoint({}), none);
  ASSERT_TRUE(ReadMigCheckpoint(none, "f").ok());
  EXPECT_TRUE(ReadMigCheckpoint(none, "f")->gpus.empty());
}

TEST(MigCheckpoint, ReadsTheKeysOfOlderVersions) {
  std::string older = kFile;
  for (std::size_t at = 0; (at = older.find("ProfileID", at)) != std::string::npos;)
    older.replace(at, 9, "ProfileId");
  ASSERT_TRUE(ReadMigCheckpoint(older, "f").ok()) << CheckpointProblems(older);
  EXPECT_EQ(*ReadMigCheckpoint(older, "f"), *ReadMigCheckpoint(kFile, "f"));
}

TEST(MigCheckpoint, ReportsAllProblems) {
  const std::string problems = CheckpointProblems(Gpus(
      R"({"UUID": "GPU-a", "MigMode": 2, "GpuInstances": [{"ProfileID": -1, "Placement": {"Start": 0, "Size": 0}, "ComputeInstances": [7]}]},
{"UUID": "GPU-a", "MigMode": 0, "GpuInstances": [{"ProfileID": 0, "Placement": {"Start": 0, "Size": 1, "End": 2}}], "Extra": 1}, 3)"));
  for (const char* problem :
       {"f:1:", "MigState.Devices[0].MigMode", "MigState.Devices[0].GpuInstances[0].ProfileID",
        "GpuInstances[0].Placement.Size", "ComputeInstances[0]: is an integer where a map",
        "MigState.Devices[1].UUID: occurs twice",
        "MigState.Devices[1].GpuInstances: has instances although MigMode is 0", "Placement.End",
        "MigState.Devices[1].Extra", "MigState.Devices[2]: is an integer"})
    EXPECT_THAT(problems, HasSubstr(problem));
}

TEST(MigCheckpoint, RefusesWhatIsNone) {
  EXPECT_THAT(CheckpointProblems(""), HasSubstr("f:1:0: syntax error"));
  EXPECT_THAT(CheckpointProblems("[]"), HasSubstr("f: is no checkpoint of mig-parted"));
  EXPECT_THAT(CheckpointProblems("version: v1"), HasSubstr("f:1:"));
  EXPECT_THAT(CheckpointProblems("{}"), HasSubstr("MigState"));
  EXPECT_THAT(CheckpointProblems(R"({"Version": "v2", "MigState": {}})"),
              HasSubstr("reads \"v1\""));
}

TEST(MigCheckpoint, KnowsTheSlicesOfComputeProfiles) {
  for (const int profile : {0, 1, 2, 3, 4, 5, 6})
    EXPECT_EQ(ComputeProfileOf(*SlicesOfComputeProfile(profile)), profile);
  EXPECT_EQ(SlicesOfComputeProfile(7), 1);  // REV1
  EXPECT_FALSE(SlicesOfComputeProfile(8));
  EXPECT_FALSE(ComputeProfileOf(5));
}

}  // namespace
}  // namespace penstock::api::compat
