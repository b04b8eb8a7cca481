// Tests the command line and the environment of `penstock cdi generate`.
#include "app/penstock/cdi/cdi_generate.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/command/parse.h"
#include "base/core/testing/must.h"

namespace penstock::app {
namespace {

using base::Code;
using device::CdiNames;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The result of parsing a command line and an environment.
class Asked {
 public:
  explicit Asked(std::vector<std::string> arguments,
                 std::map<std::string, std::string> environment = {}) {
    CdiRequest request;
    const command::Verb generate{.name = "generate", .options = CdiOptions(request)};
    const auto parsed = command::Parse(generate, std::move(arguments));
    EXPECT_TRUE(parsed.ok()) << parsed.error().message();
    const auto lookup = [&](const char* name) -> const char* {
      const auto found = environment.find(name);
      return found == environment.end() ? nullptr : found->second.c_str();
    };
    const auto taken = TakeCdiEnvironment(request, settings, lookup);
    if (taken.ok()) {
      order = UnderstandCdiRequest(request);
    } else {
      order = taken.error();
    }
  }

  Settings settings;
  base::Result<CdiOrder> order = base::Error(Code::kInternal, "");
};

TEST(CdiGenerate, WithoutWordsItIsTheMachinesDevicesByIndexAndUuidAsYamlOnStandardOutput) {
  const auto order = Must(Asked({}).order);
  EXPECT_EQ(order.mode, "auto");
  EXPECT_EQ(order.path, "");
  EXPECT_FALSE(order.json);
  EXPECT_THAT(order.options.names, ElementsAre(CdiNames::kIndex, CdiNames::kUuid));
  EXPECT_TRUE(order.options.all && order.every_device);
  EXPECT_FALSE(order.options.additional_gids || order.quiet);
  EXPECT_EQ(KindFor(order, "management.nvidia.com/gpu"), "management.nvidia.com/gpu");
}

TEST(CdiGenerate, GroupsAreForWhoAsksForThem) {
  EXPECT_TRUE(Asked({"--additional-gids"}).order->options.additional_gids);
  EXPECT_FALSE(Asked({"--additional-gids", "--feature-flag", "no-additional-gids-for-device-nodes"})
                   .order->options.additional_gids);
}

TEST(CdiGenerate, TakesWhatScriptsForNvidiaCtkSayBesides) {
  const auto order =
      Asked({"-d", "--quiet", "--csv.compat-container-root", "/usr/local/cuda/compat"}).order;
  ASSERT_TRUE(order.ok()) << order.error().message();
  EXPECT_TRUE(order->quiet);
  EXPECT_THAT(
      order->remarks,
      Contains(HasSubstr("--csv.compat-container-root /usr/local/cuda/compat has no effect")));
  EXPECT_TRUE(Asked({"--debug"}).order.ok());
}

TEST(CdiGenerate, TheFormatIsSaidByTheFileOrByTheFlag) {
  EXPECT_TRUE(Asked({"--output", "/x/a.json"}).order->json);
  EXPECT_FALSE(Asked({"--output", "/x/a.yaml"}).order->json);
  EXPECT_TRUE(Asked({"--format", "JSON"}).order->json);
  const auto both = Asked({"--output", "/x/a.yaml", "--format", "json"}).order;
  EXPECT_TRUE(both->json);
  EXPECT_THAT(both->remarks, Contains(HasSubstr("/x/a.yaml is written as json")));
}

TEST(CdiGenerate, AFileThatEnginesWouldNotReadGetsAnotherName) {
  EXPECT_EQ(Asked({"--output", "/x/a.yml"}).order->path, "/x/a.yaml");
  EXPECT_EQ(Asked({"--output", "/x/a"}).order->path, "/x/a.yaml");
  EXPECT_EQ(Asked({"--output", "/x/a.b", "--format", "json"}).order->path, "/x/a.b.json");
  EXPECT_THAT(Asked({"--output", "/x/a.yml"}).order->remarks, Contains(HasSubstr("/x/a.yaml")));
  EXPECT_EQ(Asked({"--output", "/x//y/../a.json"}).order->path, "/x/a.json");
}

TEST(CdiGenerate, TakesTheVariablesOfNvidiaCtkWhereNoFlagSaysOtherwise) {
  const std::map<std::string, std::string> environment{
      {"NVIDIA_CTK_CDI_OUTPUT_FILE_PATH", "/x/a.json"},
      {"NVIDIA_CTK_CDI_GENERATE_MODE", "csv"},
      {"NVIDIA_CTK_CDI_GENERATE_DEVICE_NAME_STRATEGIES", "uuid, type-index"},
      {"NVIDIA_CTK_CDI_GENERATE_VENDOR", "example.com"},
      {"NVIDIA_CTK_CDI_GENERATE_DISABLED_HOOKS", "enable-cuda-compat"},
      {"NVIDIA_CTK_CDI_GENERATE_FEATURE_FLAGS", "no-additional-gids-for-device-nodes"},
      {"NVIDIA_CTK_CDI_GENERATE_NO_ALL_DEVICE", "true"},
      {"NVIDIA_CTK_CDI_GENERATE_CLASS", ""},
      {"NVIDIA_CTK_DRIVER_ROOT", "/run/nvidia/driver"},
      {"NVIDIA_CTK_DEV_ROOT", "/"}};
  const Asked asked({}, environment);
  ASSERT_TRUE(asked.order.ok()) << asked.order.error().message();
  EXPECT_EQ(asked.order->path, "/x/a.json");
  EXPECT_EQ(asked.order->mode, "csv");
  EXPECT_THAT(asked.order->options.names, ElementsAre(CdiNames::kUuid, CdiNames::kTypeIndex));
  EXPECT_EQ(KindFor(*asked.order, "nvidia.com/gpu"), "example.com/gpu");
  EXPECT_THAT(asked.order->options.disable_hooks, ElementsAre("enable-cuda-compat"));
  EXPECT_FALSE(asked.order->options.additional_gids);
  EXPECT_FALSE(asked.order->options.all);
  EXPECT_EQ(asked.settings.flags.at("--driver-root"), "/run/nvidia/driver");
  EXPECT_EQ(asked.settings.flags.at("--dev-root"), "/");

  const auto flags =
      Asked({"--discovery-mode", "nvml", "--cdi-vendor=other.com", "--output=/y.yaml"}, environment)
          .order;
  EXPECT_EQ(flags->mode, "nvml");
  EXPECT_EQ(flags->vendor, "other.com");
  EXPECT_EQ(flags->path, "/y.yaml");
}

TEST(CdiGenerate, ListsMayBeSaidInOneWordOrSeveral) {
  EXPECT_THAT(Asked({"--device-id", "0,1", "--devices=GPU-1"}).order->devices,
              ElementsAre("0", "1", "GPU-1"));
  EXPECT_THAT(Asked({"--csv.file", "/a.csv", "--csv.file", "/b.csv"}).order->platform.lists,
              ElementsAre("/a.csv", "/b.csv"));
  EXPECT_THAT(Asked({"--library-search-path", "/a,/b"}).order->library_folders,
              ElementsAre("/a", "/b"));
}

TEST(CdiGenerate, DevicesAreAllOrThoseNamed) {
  EXPECT_TRUE(Asked({"--device-id", "0,all"}).order->every_device);
  const auto some = Asked({"--device-id", "0"}).order;
  EXPECT_FALSE(some->every_device || some->none);
  EXPECT_TRUE(some->options.all);
  const auto none = Asked({"--device-id", "none"}).order;
  EXPECT_THAT(none->devices, IsEmpty());
  EXPECT_TRUE(none->none);
  EXPECT_FALSE(none->every_device || none->options.all);
}

TEST(CdiGenerate, WhatIsWrongIsReportedAllTogether) {
  const base::Error wrong =
      Asked({"--vendor", "-x", "--nvidia-cdi-hook-path", "no-such-hook", "--enable-hook", "all"})
          .order.error();
  EXPECT_EQ(wrong.code(), Code::kInvalidArgument);
  for (const char* part : {"-x/gpu", "no-such-hook", "\"all\""})
    EXPECT_THAT(wrong.message(), HasSubstr(part));

  const base::Error variables =
      Asked({}, {{"NVIDIA_CTK_CDI_GENERATE_MODE", "cdi"},
                 {"NVIDIA_CTK_CDI_GENERATE_OUTPUT_FORMAT", "toml"},
                 {"NVIDIA_CTK_CDI_GENERATE_DEVICE_NAME_STRATEGIES", "name"}})
          .order.error();
  for (const char* part : {"\"cdi\" is not a mode", "\"toml\"", "\"name\""})
    EXPECT_THAT(variables.message(), HasSubstr(part));
  EXPECT_THAT(
      Asked({}, {{"NVIDIA_CTK_CDI_GENERATE_NO_ALL_DEVICE", "perhaps"}}).order.error().message(),
      HasSubstr("perhaps"));
}

TEST(CdiGenerate, FeaturesOfOthersSayNothingAndAreReported) {
  const auto order = Must(Asked({"--feature-flags", "disable-nvsandboxutils"}).order);
  EXPECT_THAT(order.remarks, Contains(HasSubstr("disable-nvsandboxutils")));
}

TEST(CdiGenerate, AHookMayBeNamedWithOrWithoutItsFolder) {
  EXPECT_EQ(Asked({"--nvidia-ctk-path", "/opt/bin/nvidia-cdi-hook"}).order->options.hook,
            "/opt/bin/nvidia-cdi-hook");
  EXPECT_THAT(Asked({"--nvidia-cdi-hook-path", "sh"}).order->options.hook,
              ::testing::EndsWith("/sh"));
}

TEST(CdiGenerate, TheDriverRootMayBeInNvidiasConfiguration) {
  const std::string file = "config.toml";
  EXPECT_EQ(
      *RootOfToolkitConfig(
          "disable-require = false\n[nvidia-container-cli]\nroot = \"/run/nvidia/driver\"\n", file),
      "/run/nvidia/driver");
  EXPECT_EQ(*RootOfToolkitConfig("[nvidia-container-cli]\n#root = \"/run/nvidia/driver\"\n", file),
            "");
  EXPECT_EQ(*RootOfToolkitConfig("", file), "");
  EXPECT_THAT(RootOfToolkitConfig("[nvidia-container-cli\n", file).error().message(),
              HasSubstr("config.toml:1:"));
}

TEST(CdiGenerate, ModesAreThoseOfTheDialectsAndTheDriversOwn) {
  EXPECT_THAT(CdiModes(),
              ElementsAre("auto", "compat32", "csv", "gdrcopy", "gds", "imex", "management",
                          "mig-caps", "mofed", "nvml", "nvswitch", "wsl"));
}

}  // namespace
}  // namespace penstock::app
