#include "hook/runtime/nvidia/capabilities.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::hook::runtime {
namespace {

using api::cdi::CdiEdits;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::UnorderedElementsAre;

Capabilities Given(std::map<std::string, std::string, std::less<>> environment,
                   const Config& config = {}, bool by_annotation = false) {
  RuntimeFacts facts;
  facts.environment = std::move(environment);
  auto capabilities = ReadCapabilities(facts, config, by_annotation);
  EXPECT_TRUE(capabilities.ok()) << capabilities.error().message();
  return capabilities.ok() ? *std::move(capabilities) : Capabilities();
}

TEST(Capabilities, AreUtilityAndComputeWhereNoOneSaysIt) {
  EXPECT_THAT(Given({}).names, UnorderedElementsAre("utility", "compute"));
  EXPECT_THAT(Given({{"NVIDIA_DRIVER_CAPABILITIES", " , "}}).names,
              UnorderedElementsAre("utility", "compute"));
  Config narrow;
  narrow.capabilities = {"utility"};
  EXPECT_THAT(Given({}, narrow).names, UnorderedElementsAre("utility"));
}

TEST(Capabilities, AreAllForImagesOfOldAndForAll) {
  EXPECT_EQ(Given({{"CUDA_VERSION", "8.0"}}).names.size(), 7u);
  EXPECT_EQ(Given({{"NVIDIA_DRIVER_CAPABILITIES", "utility,all"}}).names.size(), 7u);
  EXPECT_FALSE(Given({{"NVIDIA_DRIVER_CAPABILITIES", "all"}}).narrow);
  EXPECT_TRUE(Given({{"NVIDIA_DRIVER_CAPABILITIES", "compute,compat32"}}).narrow);
}

TEST(Capabilities, ByAnnotationAreEverythingUnlessTheContainerSaysIt) {
  EXPECT_TRUE(Given({}, {}, true).everything);
  EXPECT_FALSE(Given({{"NVIDIA_DRIVER_CAPABILITIES", "utility"}}, {}, true).everything);
}

TEST(Capabilities, ThatAreNotSupportedAreAnError) {
  RuntimeFacts facts;
  Config config;
  config.capabilities = {"utility", "compute"};
  for (const char* value : {"video", "utility,video", "magic", "\x01\n"}) {
    facts.environment["NVIDIA_DRIVER_CAPABILITIES"] = value;
    const auto capabilities = ReadCapabilities(facts, config, false);
    ASSERT_FALSE(capabilities.ok()) << value;
    EXPECT_THAT(
        capabilities.error().message(),
        HasSubstr(
            "supported are all, utility, compute (supported-driver-capabilities of config.toml)"));
  }
}

CdiEdits Specification() {
  CdiEdits edits;
  for (const char* path :
       {"/usr/lib64/libcuda.so.550.54.15", "/usr/lib64/libnvidia-ml.so.550.54.15",
        "/usr/lib64/libnvidia-encode.so.550.54.15", "/usr/lib64/libGLX_nvidia.so.550.54.15",
        "/lib/firmware/nvidia/550.54.15/gsp_ga10x.bin"})
    edits.mounts.push_back({.host_path = path, .container_path = path});
  for (const char* path : {"/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/dri/card1"})
    edits.nodes.push_back({.path = path});
  edits.hooks.push_back(
      {.name = "createContainer",
       .path = "/usr/bin/penstock-hook",
       .args = {"penstock-hook", "create-symlinks", "--link", "libcuda.so.1::/usr/lib64/libcuda.so",
                "--link=libGLX_nvidia.so.0::/usr/lib64/libGLX_indirect.so.0"}});
  edits.hooks.push_back({.name = "createContainer",
                         .path = "/usr/bin/penstock-hook",
                         .args = {"penstock-hook", "update-ldcache"}});
  return edits;
}

std::vector<std::string> Paths(const CdiEdits& edits) {
  std::vector<std::string> paths;
  for (const auto& mount : edits.mounts)
    paths.push_back(mount.container_path.substr(mount.container_path.rfind('/') + 1));
  for (const auto& node : edits.nodes) paths.push_back(node.path);
  return paths;
}

TEST(Capabilities, RestrictFilesDevicesAndLinks) {
  CdiEdits edits = Specification();
  Restrict(edits, Given({{"NVIDIA_DRIVER_CAPABILITIES", "utility"}}));
  EXPECT_THAT(Paths(edits), ElementsAre("libnvidia-ml.so.550.54.15", "gsp_ga10x.bin",
                                        "/dev/nvidia0", "/dev/nvidiactl"));
  ASSERT_EQ(edits.hooks.size(), 1u) << "without a link there is nothing to link";
  EXPECT_EQ(edits.hooks[0].args[1], "update-ldcache");

  edits = Specification();
  Restrict(edits, Given({}));
  EXPECT_THAT(Paths(edits),
              ElementsAre("libcuda.so.550.54.15", "libnvidia-ml.so.550.54.15", "gsp_ga10x.bin",
                          "/dev/nvidia0", "/dev/nvidiactl", "/dev/nvidia-uvm"));
  EXPECT_THAT(edits.hooks[0].args, ElementsAre("penstock-hook", "create-symlinks", "--link",
                                               "libcuda.so.1::/usr/lib64/libcuda.so"));

  edits = Specification();
  Restrict(edits, Given({{"NVIDIA_DRIVER_CAPABILITIES", "graphics"}}));
  EXPECT_THAT(edits.hooks[0].args,
              ElementsAre("penstock-hook", "create-symlinks",
                          "--link=libGLX_nvidia.so.0::/usr/lib64/libGLX_indirect.so.0"));
}

TEST(Capabilities, OfEverythingRestrictNothing) {
  CdiEdits edits = Specification();
  Restrict(edits, Given({}, {}, true));
  EXPECT_EQ(edits, Specification());
  RemoveHooks(edits, "update-ldcache");
  EXPECT_EQ(edits.hooks.size(), 1u);
}

}  // namespace
}  // namespace penstock::hook::runtime
