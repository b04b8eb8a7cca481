#include "hook/runtime/nvidia/config.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/core/file.h"
#include "os/core/testing/temporary_folder.h"

namespace penstock::hook::runtime {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string ErrorOf(std::string_view text) {
  const auto config = ParseConfig(text, "config.toml");
  return config.ok() ? "" : config.error().message();
}

Config Read(std::string_view text) {
  auto config = ParseConfig(text, "config.toml");
  EXPECT_TRUE(config.ok()) << config.error().message();
  return config.ok() ? *std::move(config) : Config();
}

// As `nvidia-ctk config` of 1.17 writes it.
constexpr std::string_view kInstalled = R"(
#accept-nvidia-visible-devices-as-volume-mounts = false
#accept-nvidia-visible-devices-envvar-when-unprivileged = true
disable-require = false
supported-driver-capabilities = "compat32,compute,display,graphics,ngx,utility,video"
#swarm-resource = "DOCKER_RESOURCE_GPU"

[nvidia-container-cli]
#debug = "/var/log/nvidia-container-toolkit.log"
environment = []
#ldcache = "/etc/ld.so.cache"
ldconfig = "@/sbin/ldconfig.real"
load-kmods = true
#no-cgroups = false
#path = "/usr/bin/nvidia-container-cli"
#root = "/run/nvidia/driver"
#user = "root:video"

[nvidia-container-runtime]
#debug = "/var/log/nvidia-container-runtime.log"
log-level = "info"
mode = "auto"
runtimes = ["docker-runc", "runc", "crun"]

[nvidia-container-runtime.modes]

[nvidia-container-runtime.modes.cdi]
annotation-prefixes = ["cdi.k8s.io/"]
default-kind = "nvidia.com/gpu"
spec-dirs = ["/etc/cdi", "/var/run/cdi"]

[nvidia-container-runtime.modes.csv]
mount-spec-path = "/etc/nvidia-container-runtime/host-files-for-container.d"

[nvidia-container-runtime.modes.legacy]
cuda-compat-mode = "ldconfig"

[nvidia-container-runtime-hook]
path = "nvidia-container-runtime-hook"
skip-mode-detection = false

[nvidia-ctk]
path = "nvidia-ctk"
)";

TEST(Config, TheToolkitsOwnFileNeedsNoWord) {
  const Config config = Read(kInstalled);
  EXPECT_THAT(config.warnings, IsEmpty());
  EXPECT_THAT(config.no_effect, IsEmpty());
  EXPECT_THAT(config.runtimes, ElementsAre("docker-runc", "runc", "crun"));
  EXPECT_FALSE(config.accept_environment);
  EXPECT_TRUE(config.cuda_compat);
}

TEST(Config, OfAnEmptyFileIsTheDefault) {
  const Config config = Read("");
  EXPECT_THAT(config.runtimes, ElementsAre("runc", "crun"));
  EXPECT_THAT(config.spec_dirs, ElementsAre("/etc/cdi", "/var/run/cdi"));
  EXPECT_TRUE(config.accept_mounts);
  EXPECT_EQ(Read("# nothing\n").runtimes, config.runtimes);
}

TEST(Config, TakesWhatHasAMeaningHere) {
  const Config config = Read(R"(
accept-nvidia-visible-devices-envvar-when-unprivileged = false
accept-nvidia-visible-devices-as-volume-mounts = false
disable-require = true
swarm-resource = "DOCKER_RESOURCE_GPU, OTHER"
supported-driver-capabilities = "utility, compute"
nvidia-container-runtime.debug = "/var/log/x.log"
nvidia-container-runtime.log-level = "debug"
nvidia-container-runtime.runtimes = []
nvidia-container-runtime.modes.cdi.default-kind = "management.nvidia.com/gpu"
nvidia-container-runtime.modes.cdi.annotation-prefixes = ["a/", "b/"]
nvidia-container-runtime.modes.cdi.spec-dirs = ["/x"]
features.disable-cuda-compat-lib-hook = true
features.ignore-imex-channel-requests = true
features.no-additional-gids-for-device-nodes = true
)");
  EXPECT_EQ(config.accept_environment, false);
  EXPECT_FALSE(config.accept_mounts);
  EXPECT_TRUE(config.disable_require);
  EXPECT_THAT(config.swarm_resources, ElementsAre("DOCKER_RESOURCE_GPU", "OTHER"));
  EXPECT_THAT(config.capabilities, ElementsAre("utility", "compute"));
  EXPECT_EQ(config.debug_file, "/var/log/x.log");
  EXPECT_EQ(config.log_level, RuntimeLogLevel::kDebug);
  EXPECT_THAT(config.runtimes, ElementsAre("runc", "crun"));
  EXPECT_EQ(config.default_kind, "management.nvidia.com/gpu");
  EXPECT_THAT(config.annotation_prefixes, ElementsAre("a/", "b/"));
  EXPECT_THAT(config.spec_dirs, ElementsAre("/x"));
  EXPECT_FALSE(config.cuda_compat || config.imex_channels || config.additional_gids);
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(Config, AnUnknownKeyIsAWarningWithItsPlace) {
  const Config config = Read(
      "disable-requires = true\n[nvidia-container-runtime]\nruntime = [\"x\"]\n[strange]\na = 1\n");
  ASSERT_EQ(config.warnings.size(), 3u);
  EXPECT_THAT(
      config.warnings[0],
      HasSubstr(
          "config.toml:1:1: unknown key \"disable-requires\"; did you mean \"disable-require\"?"));
  EXPECT_THAT(
      config.warnings[1],
      HasSubstr("config.toml:3:1: unknown key \"nvidia-container-runtime.runtime\"; did you mean"));
  EXPECT_THAT(config.warnings[2], HasSubstr("config.toml:4:"));
  EXPECT_THAT(config.runtimes, ElementsAre("runc", "crun"));
}

TEST(Config, AWrongTypeIsAnErrorAndAllAreReported) {
  const std::string error = ErrorOf(
      "disable-require = \"yes\"\n[nvidia-container-runtime]\nruntimes = \"runc\"\nmode = "
      "\"fast\"\n");
  EXPECT_THAT(
      error,
      HasSubstr(
          "config.toml:1:19: disable-require: is a string (yes) where a boolean is expected"));
  EXPECT_THAT(error, HasSubstr("config.toml:3:12: nvidia-container-runtime.runtimes: is a string "
                               "(runc) where a list is expected"));
  EXPECT_THAT(
      error,
      HasSubstr("config.toml:4:8: nvidia-container-runtime.mode: \"fast\" is none of auto, cdi"));
  EXPECT_THAT(ErrorOf("nvidia-container-runtime = 3\n"),
              HasSubstr("is an integer (3) where a map is expected"));
  EXPECT_THAT(ErrorOf("a = [\n"), HasSubstr("config.toml:"));
}

TEST(Config, SaysWhichOptionsHaveNoEffect) {
  const Config config = Read(
      "[nvidia-container-cli]\nroot = \"/run/nvidia/driver\"\nno-cgroups = true\nuser = \"\"\n"
      "[nvidia-container-runtime]\nexperimental = true\n");
  EXPECT_THAT(config.no_effect,
              ElementsAre("nvidia-container-cli.root", "nvidia-container-cli.no-cgroups",
                          "nvidia-container-runtime.experimental"));
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST(Config, UnsafeOptionsHaveNoEffectAndAreSaid) {
  const Config config = Read(
      "nvidia-container-cli.ldconfig = \"/sbin/ldconfig\"\nfeatures.allow-ldconfig-from-container "
      "= true\n"
      "features.allow-cuda-compat-libs-from-container = true\n"
      "nvidia-container-runtime.modes.legacy.cuda-compat-mode = \"mount\"\n");
  EXPECT_THAT(config.warnings,
              ElementsAre(HasSubstr("ldconfig: has no effect"),
                          HasSubstr("allow-ldconfig-from-container: has no effect"),
                          HasSubstr("allow-cuda-compat-libs-from-container: has no effect"),
                          HasSubstr("CVE-2024-0132")));
  EXPECT_TRUE(config.cuda_compat);
  EXPECT_FALSE(
      Read("nvidia-container-runtime.modes.legacy.cuda-compat-mode = \"disabled\"\n").cuda_compat);
}

TEST(Config, TheRuntimeIsFoundInABrokenFileToo) {
  EXPECT_THAT(ParseRuntimes("[nvidia-container-runtime]\nruntimes = [\"crun\"]\nmode = 3\n"),
              ElementsAre("crun"));
  EXPECT_THAT(ParseRuntimes("[nvidia-container-runtime\n"), ElementsAre("runc", "crun"));
  EXPECT_THAT(ParseRuntimes("[nvidia-container-runtime]\nruntimes = 3\n"),
              ElementsAre("runc", "crun"));
  EXPECT_THAT(ParseRuntimes(""), ElementsAre("runc", "crun"));
}

TEST(Config, IsFoundWhereTheToolkitLooksForIt) {
  const os::TemporaryFolder folder;
  const std::string home = folder.path() + "/home";
  ASSERT_TRUE(os::MakeDirectories(home + "/nvidia-container-runtime").ok());
  ::unsetenv("NVIDIA_CTK_CONFIG_FILE_PATH");
  ::setenv("XDG_CONFIG_HOME", home.c_str(), 1);
  EXPECT_EQ(FindConfig(),
            "/etc/nvidia-container-runtime/config.toml");  // a variable does not hide the
                                                           // administrator's file
  ASSERT_TRUE(os::WriteFileAtomically(home + "/nvidia-container-runtime/config.toml", "").ok());
  EXPECT_EQ(FindConfig(), home + "/nvidia-container-runtime/config.toml");
  ::setenv("NVIDIA_CTK_CONFIG_FILE_PATH", "/x/y.toml", 1);
  EXPECT_EQ(FindConfig(), "/x/y.toml");
  ::unsetenv("NVIDIA_CTK_CONFIG_FILE_PATH");
  ::unsetenv("XDG_CONFIG_HOME");
}

}  // namespace
}  // namespace penstock::hook::runtime
