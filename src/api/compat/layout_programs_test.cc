#include "api/compat/layout_programs.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::api::compat {
namespace {

using ::testing::ElementsAre;

Result<std::string> AnyProfile(std::string_view name) { return std::string(name); }

TEST(LayoutPrograms, HaveFilesAndSettingsOfTheirOwn) {
  std::set<std::string_view> names;
  std::set<std::string> files;
  for (const LayoutProgram* program : LayoutPrograms()) {
    EXPECT_TRUE(names.insert(program->name).second) << program->name;
    EXPECT_EQ(FindLayoutProgram(program->name), program);
    NodeConfig config;
    config.layouts_file = "layouts";
    config.mode_profiles_file = "modes";
    EXPECT_TRUE(files.insert(config.*program->layouts).second) << program->name;
  }
  EXPECT_EQ(FindLayoutProgram(""), nullptr);
  EXPECT_EQ(FindLayoutProgram("none"), nullptr);
}

TEST(LayoutPrograms, ReadLayoutsOfProfiles) {
  const LayoutProgram& program = *FindLayoutProgram("mig-manager");
  const auto file = program.read(
      "version: v1\nmig-configs:\n  two:\n  - {devices: all, mig-enabled: true, mig-devices: "
      "{1g.5gb: 2}}\n",
      "layouts.yaml", AnyProfile);
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_THAT(file->layouts.names(), ElementsAre("two"));
  EXPECT_EQ(program.read("version: v2\n", "layouts.yaml", AnyProfile).error().code(),
            Code::kInvalidArgument);
  EXPECT_THAT(program.read_services("version: v1\nsystemd-services: [a.service]\n", "clients.yaml")
                  .value_or({}),
              ElementsAre("a.service"));
}

TEST(LayoutPrograms, ReadLayoutsOfModesOfWhichSomeMayBeWrong) {
  const LayoutProgram& program = *FindLayoutProgram("device-config-manager");
  constexpr std::string_view kText =
      R"({"gpu-config-profiles": {
            "right": {"profiles": [{"computePartition": "CPX", "memoryPartition": "NPS1",
                                    "numGPUsAssigned": 1}]},
            "wrong": {"profiles": [{"computePartition": "XXX", "memoryPartition": "NPS1",
                                    "numGPUsAssigned": 1}]}},
          "gpuClientSystemdServices": {"names": ["dcgm"]}})";
  const auto file = program.read(kText, "config.json", nullptr);
  ASSERT_TRUE(file.ok()) << file.error().message();
  EXPECT_THAT(file->layouts.names(), ElementsAre("right"));
  ASSERT_TRUE(file->wrong.contains("wrong"));
  EXPECT_TRUE(file->wrong.at("wrong").compute_mode);
  EXPECT_THAT(program.read_services(kText, "config.json").value_or({}),
              ElementsAre("dcgm.service"));
  EXPECT_EQ(program.read("{", "config.json", nullptr).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::api::compat
