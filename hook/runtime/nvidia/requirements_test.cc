#include "hook/runtime/nvidia/requirements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::hook::runtime {
namespace {
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const DriverFacts kDriver{"550.54.15", "12.4"};

RuntimeFacts Requiring(std::string requirement) {
  RuntimeFacts facts;
  facts.environment["NVIDIA_REQUIRE_CUDA"] = std::move(requirement);
  return facts;
}

/// "holds", "unknown", or the name of the error's code.
std::string Judged(std::string requirement, const DriverFacts& driver = kDriver) {
  const auto judged = CheckRequirements(Requiring(std::move(requirement)), {}, driver);
  if (!judged.ok()) return std::string(Name(judged.error().code()));
  return judged->empty() ? "holds" : "unknown";
}

TEST(Requirements, CompareVersionsByNumber) {
  const std::pair<const char*, const char*> cases[] = {{"cuda>=12.4", "holds"},
                                                       {"cuda>=12.10", "FAILED_PRECONDITION"},
                                                       {"cuda>=9.2", "holds"},
                                                       {"cuda>12.4", "FAILED_PRECONDITION"},
                                                       {"cuda=12.4.0", "holds"},
                                                       {"cuda!=12.4", "FAILED_PRECONDITION"},
                                                       {"cuda<13", "holds"},
                                                       {"cuda<=12.4", "holds"},
                                                       {"driver>=550", "holds"},
                                                       {"driver<550.54.15", "FAILED_PRECONDITION"},
                                                       {"driver>=v535.1", "holds"},
                                                       {"CUDA>=12.0", "holds"},
                                                       {"", "holds"},
                                                       {"  ", "holds"},
                                                       {",,", "holds"}};
  for (const auto& [requirement, verdict] : cases)
    EXPECT_EQ(Judged(requirement), verdict) << requirement;
}

TEST(Requirements, BlanksAreAlternativesAndCommasHoldTogether) {
  EXPECT_EQ(Judged("cuda>=13 driver>=550,driver<551"), "holds");
  EXPECT_EQ(Judged("cuda>=13 driver>=535,driver<536"), "FAILED_PRECONDITION");
  EXPECT_EQ(Judged("cuda>=12.0,driver>=600"), "FAILED_PRECONDITION");
}

// As in CUDA images since 11.
TEST(Requirements, OfTheBrandAreNotKnownButWhatStandsBesideThemIs) {
  const std::string image =
      "cuda>=12.8 brand=unknown,driver>=535,driver<536 brand=tesla,driver>=535,driver<536 "
      "brand=tesla,driver>=550,driver<551";
  EXPECT_EQ(Judged(image, {"570.86.10", "12.8"}), "holds");
  EXPECT_EQ(Judged(image, {"550.54.15", "12.4"}), "unknown");
  EXPECT_EQ(Judged(image, {"545.23.06", "12.3"}), "FAILED_PRECONDITION");
  EXPECT_EQ(Judged(image, {}), "unknown");
  EXPECT_EQ(Judged("arch>=7.0"), "unknown");
  const auto remarks = CheckRequirements(Requiring("brand=tesla"), {}, kDriver);
  ASSERT_TRUE(remarks.ok());
  ASSERT_THAT(*remarks, SizeIs(1));
  EXPECT_THAT(remarks->front().text,
              AllOf(HasSubstr("\"brand=tesla\""), HasSubstr("cannot check requirement"),
                    HasSubstr("\"550.54.15\"")));
}

TEST(Requirements, ThatAreNoneAreAnError) {
  for (const char* requirement : {"cuda", ">=12", "cuda>=", "cuda==12", "cuda=>12", "cuda>=twelve",
                                  "cuda>=12.4-x", "\x01\x02"})
    EXPECT_EQ(Judged(requirement), "INVALID_ARGUMENT") << requirement;
}

TEST(Requirements, SayWhatThereIsAndWhatToDo) {
  EXPECT_THAT(CheckRequirements(Requiring("cuda>=13.0"), {}, kDriver).error().message(),
              AllOf(HasSubstr("requires \"cuda>=13.0\" (\"NVIDIA_REQUIRE_CUDA\")"),
                    HasSubstr("driver \"550.54.15\", CUDA \"12.4\""),
                    HasSubstr("update the driver"), HasSubstr("NVIDIA_DISABLE_REQUIRE=1")));
}

TEST(Requirements, AllVariablesMustHold) {
  RuntimeFacts facts = Requiring("cuda>=12.4");
  facts.environment["NVIDIA_REQUIRE_DRIVER"] = "driver>=600";
  EXPECT_FALSE(CheckRequirements(facts, {}, kDriver).ok());
  facts.environment["NVIDIA_REQUIRE_DRIVER"] = "driver>=500";
  facts.environment["NVIDIA_REQUIRE_JETPACK"] = "csv-mounts=all";
  EXPECT_TRUE(CheckRequirements(facts, {}, kDriver).ok());
}

TEST(Requirements, AreSwitchedOff) {
  RuntimeFacts facts = Requiring("cuda>=99");
  Config off;
  off.disable_require = true;
  EXPECT_TRUE(CheckRequirements(facts, off, kDriver).ok());
  facts.environment["NVIDIA_DISABLE_REQUIRE"] = "true";
  EXPECT_TRUE(CheckRequirements(facts, {}, kDriver).ok());
  facts.environment["NVIDIA_DISABLE_REQUIRE"] = "0";
  EXPECT_FALSE(CheckRequirements(facts, {}, kDriver).ok());
}

TEST(Requirements, OfImagesOfOldAreTheirCuda) {
  RuntimeFacts facts;
  facts.environment["CUDA_VERSION"] = "13.0.1";
  EXPECT_FALSE(CheckRequirements(facts, {}, kDriver).ok());
  facts.environment["CUDA_VERSION"] = "8.0.61";
  EXPECT_TRUE(CheckRequirements(facts, {}, kDriver).ok());
  facts.environment["CUDA_VERSION"] = "whatever";
  EXPECT_THAT(*CheckRequirements(facts, {}, kDriver), IsEmpty());
}

TEST(DriverFacts, StandInTheSpecification) {
  api::cdi::CdiEdits edits;
  EXPECT_EQ(ReadDriverFacts(edits).driver, "");
  edits.mounts.push_back(
      {.host_path = "/usr/lib64/libcuda.so.1", .container_path = "/usr/lib64/libcuda.so.1"});
  edits.mounts.push_back({.host_path = "/usr/lib64/libcuda.so.535.104.05",
                          .container_path = "/usr/lib64/libcuda.so.535.104.05"});
  EXPECT_EQ(ReadDriverFacts(edits).driver, "535.104.05");
  edits.hooks.push_back(
      {.name = "createContainer",
       .path = "/usr/bin/nvidia-cdi-hook",
       .args = {"nvidia-cdi-hook", "enable-cuda-compat", "--host-driver-version=550.54.15",
                "--host-cuda-version", "12.4"}});
  EXPECT_EQ(ReadDriverFacts(edits).driver, "550.54.15");
  EXPECT_EQ(ReadDriverFacts(edits).cuda, "12.4");
}

}  // namespace
}  // namespace penstock::hook::runtime
