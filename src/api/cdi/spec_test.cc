// Tests which specifications are accepted and refused, which version a content requires, and that
// written specifications read back.
#include "api/cdi/spec.h"

#include <algorithm>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/cdi/testing/random_spec.h"
#include "api/cdi/version.h"

namespace penstock::api::cdi {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kGpu[] = R"(---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
      hostPath: /driver/dev/nvidia0
      fileMode: 438
      permissions: rw
- name: all
  containerEdits: {env: ["A=b"]}
containerEdits:
  env:
  - NVIDIA_VISIBLE_DEVICES=void
  hooks:
  - hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
    args: [nvidia-cdi-hook, chmod, --mode, "755"]
    env: [NVIDIA_CTK_DEBUG=false]
    timeout: 5
  mounts:
  - hostPath: /usr/lib/libcuda.so.1
    containerPath: /usr/lib/libcuda.so.1
    options: [ro, nosuid]
)";

/// Returns a whole specification around the edits of its one device; the caller indents each line.
std::string WithEdits(const std::string& edits, const std::string& version = "1.1.0") {
  return "cdiVersion: " + version +
         "\nkind: nvidia.com/gpu\ndevices:\n- name: a\n  containerEdits:\n" + edits;
}

std::string ProblemsOf(const std::string& text) {
  const auto spec = Parse(text, "f");
  return spec.ok() ? "" : spec.error().message();
}

TEST(Spec, IsReadAsItIsWritten) {
  const auto spec = Parse(kGpu, "gpu.yaml");
  ASSERT_TRUE(spec.ok()) << spec.error().message();
  EXPECT_EQ(spec->version, "0.5.0");
  EXPECT_EQ(spec->kind, "nvidia.com/gpu");
  ASSERT_EQ(spec->devices.size(), 2u);
  const DeviceNode node{.path = "/dev/nvidia0",
                        .host_path = "/driver/dev/nvidia0",
                        .file_mode = 0666,
                        .permissions = "rw"};
  EXPECT_THAT(spec->devices[0].edits.nodes, ElementsAre(node));
  const Hook hook{"createContainer",
                  "/usr/bin/nvidia-cdi-hook",
                  {"nvidia-cdi-hook", "chmod", "--mode", "755"},
                  {"NVIDIA_CTK_DEBUG=false"},
                  5};
  EXPECT_THAT(spec->edits.hooks, ElementsAre(hook));
  EXPECT_THAT(
      spec->edits.mounts,
      ElementsAre(Mount{"/usr/lib/libcuda.so.1", "/usr/lib/libcuda.so.1", {"ro", "nosuid"}, ""}));
}

TEST(Spec, IsTheSameAfterItWasWrittenAndRead) {
  for (std::uint32_t seed = 0; seed < 2000; ++seed) {
    Spec spec = RandomSpec(seed).Make();
    spec.version = MinimumVersion(spec);
    ASSERT_TRUE(Check(spec).ok()) << seed << ": " << Check(spec).error().message();
    for (const std::string& text : {ToJson(spec), ToYaml(spec)}) {
      const auto again = Parse(text, "f");
      ASSERT_TRUE(again.ok()) << seed << ": " << again.error().message() << "\n" << text;
      ASSERT_EQ(*again, spec) << seed << "\n" << text;
    }
  }
}

TEST(Spec, IsWrittenWithTheLowestVersionThatIsReadAgain) {
  for (std::uint32_t seed = 0; seed < 500; ++seed) {
    Spec spec = RandomSpec(seed).Make();
    const auto place = *internal::PlaceOf(MinimumVersion(spec));
    EXPECT_THAT(ToYaml(spec), HasSubstr("cdiVersion: " + MinimumVersion(spec) + "\n"));
    for (std::size_t i = *internal::PlaceOf("0.3.0"); i < internal::Versions().size(); ++i) {
      spec.version = internal::Versions()[i];
      EXPECT_EQ(Check(spec).ok(), i >= place) << seed << " " << spec.version;
    }
  }
}

TEST(Spec, TakesAVersionForWhatItBrought) {
  Spec spec{"", "nvidia.com/gpu", {}, {{"gpu0", {}, {.env = {"A=b"}}}}, {}};
  const auto with = [&spec](const std::function<void(Spec&)>& change) {
    Spec changed = spec;
    change(changed);
    return MinimumVersion(changed);
  };
  EXPECT_EQ(MinimumVersion(spec), "0.3.0");
  EXPECT_EQ(with([](Spec& s) { s.edits.mounts = {{"/a", "/a", {}, ""}}; }), "0.3.0");
  EXPECT_EQ(with([](Spec& s) { s.edits.mounts = {{"/a", "/a", {}, "none"}}; }), "0.4.0");
  EXPECT_EQ(with([](Spec& s) { s.devices[0].edits.nodes = {{.path = "/a", .host_path = "/b"}}; }),
            "0.5.0");
  EXPECT_EQ(with([](Spec& s) { s.devices[0].name = "0"; }), "0.5.0");
  EXPECT_EQ(with([](Spec& s) { s.annotations = {{"a", "b"}}; }), "0.6.0");
  EXPECT_EQ(with([](Spec& s) { s.devices[0].annotations = {{"a", "b"}}; }), "0.6.0");
  EXPECT_EQ(with([](Spec& s) { s.kind = "nvidia.com/gpu.shared"; }), "0.6.0");
  EXPECT_EQ(with([](Spec& s) { s.edits.additional_gids = {44}; }), "0.7.0");
  EXPECT_EQ(with([](Spec& s) { s.devices[0].edits.intel_rdt.emplace(); }), "0.7.0");
  EXPECT_EQ(with([](Spec& s) { s.edits.intel_rdt.emplace().enable_monitoring = true; }), "1.1.0");
  EXPECT_EQ(with([](Spec& s) { s.edits.net_devices = {{"eth0", "net0"}}; }), "1.1.0");
}

TEST(Spec, SaysWhatTakesItsVersion) {
  Spec spec{"", "nvidia.com/gpu", {}, {{"gpu0", {}, {.additional_gids = {44}}}}, {}};
  EXPECT_EQ(WhatTakesMinimum(spec), "additionalGids");
  spec.devices[0].edits = {.env = {"A=b"}};
  EXPECT_EQ(WhatTakesMinimum(spec), "");
}

TEST(Version, IsLaterThanTheOnesBeforeItAndAFutureOneThanAll) {
  EXPECT_TRUE(IsLater("0.7.0", "0.6.0"));
  EXPECT_TRUE(IsLater("v1.0.0", "0.8.0"));
  EXPECT_TRUE(IsLater("2.0.0", "1.1.0"));
  EXPECT_FALSE(IsLater("0.5.0", "0.5.0"));
  EXPECT_FALSE(IsLater("0.5.0", "v0.6.0"));
  EXPECT_FALSE(IsLater("1.1.0", "2.0.0"));
}

TEST(Spec, IsRefusedForEachThingThatEnginesRefuse) {
  const struct {
    std::string text;
    std::string problem;
  } cases[] = {
      {"", "f: is empty; a CDI specification is expected"},
      {"- a", "is a list where a CDI specification is expected"},
      {"{", "f:"},
      {"cdiVersion: 0.5.0\ncdiVersion: 0.5.0\n", "f:2:1: "},
      {"cdiVersion: 1.2.0\nkind: a.b/cd\ndevices: [{name: a, containerEdits: {env: [A=b]}}]",
       "f:1:13: cdiVersion: \"1.2.0\" is not one of the known versions"},
      {"kind: a.b/cd\ndevices: [{name: a, containerEdits: {env: [A=b]}}]",
       "cdiVersion: is missing"},
      {"cdiVersion: 0.5.0\nkind: a.b/cd\ndevices: [{name: a, containerEdits: {netDevices: "
       "[{hostInterfaceName: e, name: f}]}}]",
       "cdiVersion: must be at least \"1.1.0\", for netDevices"},
      {"cdiVersion: 0.5.0\nkind: a.b/cd\ndevices: []", "f:3:10: devices: at least one is required"},
      {"cdiVersion: 0.5.0\nkind: nvidia.com\ndevices: [{name: a, containerEdits: {env: [A=b]}}]",
       "f:2:7: kind: \"nvidia.com\": must be vendor/class"},
      {"cdiVersion: 0.5.0\nkind: a.b/cd\ndevices: [{name: a}]",
       "f:3:11: devices[0].containerEdits: is empty"},
      {"cdiVersion: 0.5.0\nkind: a.b/cd\ndevices: [{name: a, containerEdits: {env: [A=b]}}, {name: "
       "a, containerEdits: {env: [A=b]}}]",
       "f:3:59: devices[1].name: \"a\" appears twice"},
      {"cdiVersion: 0.5.0\nkind: a.b/cd\nextra: 1\ndevices: [{name: a, containerEdits: {env: "
       "[A=b]}}]",
       "f:3:1: unknown key \"extra\""},
      {WithEdits("    env: [A]\n"),
       "f:6:11: devices[0].containerEdits.env[0]: \"A\" must be NAME=value"},
      {WithEdits("    env: [=b]\n"), "must be NAME=value"},
      {WithEdits("    deviceNode: []\n"), "did you mean \"deviceNodes\"?"},
      {WithEdits("    deviceNodes: [{}]\n"),
       "f:6:19: devices[0].containerEdits.deviceNodes[0].path: is empty or missing"},
      {WithEdits("    deviceNodes: [null]\n"), "deviceNodes[0]: is null where a map is expected"},
      {WithEdits("    deviceNodes: [/dev/a]\n"),
       "deviceNodes[0]: is a string where a map is expected"},
      {WithEdits("    deviceNodes: /dev/a\n"), "is a string where a list is expected"},
      {WithEdits("    deviceNodes: [{path: /a, type: x}]\n"), "type: \"x\" is none of b, c, u, p"},
      {WithEdits("    deviceNodes: [{path: /a, permissions: rwx}]\n"),
       "permissions: \"rwx\" may contain only r, w and m"},
      {WithEdits("    deviceNodes: [{path: /a, permissions: none}]\n"), "permissions: \"none\""},
      {WithEdits("    deviceNodes: [{path: /a, fileMode: 4294967296}]\n"),
       "fileMode: is 4294967296, outside of 0 to 4294967295"},
      {WithEdits("    deviceNodes: [{path: /a, gid: -1}]\n"), "gid: is -1, outside of 0"},
      {WithEdits("    deviceNodes: [{path: /a, major: \"1\"}]\n"),
       "major: is a string where an integer is expected"},
      {WithEdits("    deviceNodes: [{path: 0x10}]\n"),
       "path: is an integer (0x10) where a string is expected; put it in quotes"},
      {WithEdits("    mounts: [{hostPath: /a}]\n"), "mounts[0].containerPath: is empty or missing"},
      {WithEdits("    mounts: [{containerPath: /a}]\n"), "mounts[0].hostPath: is empty or missing"},
      {WithEdits("    hooks: [{hookName: onStart, path: /a}]\n"),
       "hookName: \"onStart\" is none of prestart, createRuntime"},
      {WithEdits("    hooks: [{hookName: poststop}]\n"), "hooks[0].path: is empty or missing"},
      {WithEdits("    hooks: [{hookName: poststop, path: /a, env: [A]}]\n"),
       "hooks[0].env[0]: \"A\" must be NAME=value"},
      {WithEdits(
           "    netDevices: [{hostInterfaceName: e, name: a}, {hostInterfaceName: e, name: b}]\n"),
       "hostInterfaceName: \"e\" appears twice"},
      {WithEdits("    netDevices: [{hostInterfaceName: e}]\n"),
       "netDevices[0].name: is empty or missing"},
      {WithEdits("    intelRdt: {closID: ..}\n"), "intelRdt.closID: must be a file name"},
      {WithEdits("    intelRdt: {enableCMT: true}\n"), "1.1.0 has no enableCMT"},
      {WithEdits("    intelRdt: {enableCMT: true, enableMonitoring: true}\n"),
       "they cannot be combined"},
      {WithEdits("    additionalGids: [\"44\"]\n"),
       "additionalGids[0]: must be a numeric group ID"},
  };
  for (const auto& one : cases)
    EXPECT_THAT(ProblemsOf(one.text), HasSubstr(one.problem)) << one.text;
}

TEST(Spec, IsReadWhereEnginesReadIt) {
  for (const std::string& text : {
           WithEdits("    intelRdt: {enableCMT: true}\n", "0.7.0"),
           WithEdits("    intelRdt: {closID: /}\n"),
           WithEdits("    env: [A=b]\n", "v1.0.0"),
           WithEdits("    env: null\n    deviceNodes: [{path: /a, type: p}]\n"),
           std::string("{\t\"cdiVersion\": \"0.3.0\", \"kind\": \"a.b/cd\", \"devices\": "
                       "[{\"name\": \"a\", \"containerEdits\": {\"env\": "
                       "[\"A=b\"]}}]}"),
       })
    EXPECT_EQ(ProblemsOf(text), "") << text;
  EXPECT_EQ(Parse(WithEdits("    env: [A=b]\n", "v1.0.0"), "f")->version, "1.0.0");
}

// Go's reader accepts plain numbers as texts, and reads an integer with a leading zero as octal.
TEST(Spec, TakesScalarsAsEnginesDo) {
  const auto spec = Parse(
      "cdiVersion: 0.7.0\nkind: a.b/cd\ndevices:\n- name: 0\n  containerEdits:\n    deviceNodes: "
      "[{path: /a, fileMode: 0660}]\n"
      "    hooks: [{hookName: poststop, path: /a, args: [a, 755, true, 1.5, null]}]\n",
      "f");
  ASSERT_TRUE(spec.ok()) << spec.error().message();
  EXPECT_EQ(spec->devices[0].name, "0");
  EXPECT_EQ(spec->devices[0].edits.nodes[0].file_mode, 0660u);
  EXPECT_THAT(spec->devices[0].edits.hooks[0].args, ElementsAre("a", "755", "true", "1.5", ""));
}

TEST(Spec, ReportsAllProblemsAtOnceEachOnce) {
  const std::string problems = ProblemsOf(R"(cdiVersion: 0.3.0
kind: gpu
devices:
- name: [0]
  containerEdits:
    env: [A]
    hooks: 5
- name: b!
  containerEdits: x
)");
  const auto count = std::count(problems.begin(), problems.end(), '\n') + 1;
  EXPECT_EQ(count, 6) << problems;
  EXPECT_THAT(problems,
              AllOf(HasSubstr("f:2:7: kind"), HasSubstr("f:4:9: devices[0].name: is a list"),
                    HasSubstr("f:6:11: devices[0]"),
                    HasSubstr("f:7:12: devices[0].containerEdits.hooks: is an integer"),
                    HasSubstr("f:8:9: devices[1].name"),
                    HasSubstr("f:9:19: devices[1].containerEdits: is a string")));
}

TEST(Spec, IsCheckedWithoutAFile) {
  const Spec spec{"", "nvidia.com", {}, {{"0", {}, {}}}, {}};
  EXPECT_EQ(Check(spec).error().message(),
            "kind: \"nvidia.com\": must be vendor/class\ndevices[0].containerEdits: is empty; a "
            "device must change something in its containers");
}

TEST(Spec, IsYamlThatPeopleKnow) {
  Spec spec{"",
            "nvidia.com/gpu",
            {},
            {{"0", {}, {.nodes = {{.path = "/dev/nvidia0", .major = 195, .permissions = "rwm"}}}}},
            {}};
  spec.edits.hooks = {{"createContainer",
                       "/usr/bin/penstock-hook",
                       {"penstock-hook", "update-ldcache", "--folder", "/usr/lib"},
                       {"A=b c"},
                       {}}};
  EXPECT_EQ(ToYaml(spec), R"(---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
  - name: "0"
    containerEdits:
      deviceNodes:
        - path: /dev/nvidia0
          major: 195
          permissions: rwm
containerEdits:
  hooks:
    - hookName: createContainer
      path: /usr/bin/penstock-hook
      args:
        - penstock-hook
        - update-ldcache
        - --folder
        - /usr/lib
      env:
        - "A=b c"
)");
}

TEST(Spec, IsWrittenEvenWhereAPathIsNoUtf8) {
  const Spec spec{
      "", "nvidia.com/gpu", {}, {{"a", {}, {.mounts = {{"/a\xff", "/a", {}, ""}}}}}, {}};
  EXPECT_TRUE(Parse(ToJson(spec), "f").ok());
  EXPECT_TRUE(Parse(ToYaml(spec), "f").ok());
}

TEST(Name, IsVendorClassAndDevice) {
  const auto name = ParseName("k8s.gpu.nvidia.com/claim=GPU-1:2.3_4");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->kind, "k8s.gpu.nvidia.com/claim");
  EXPECT_EQ(name->device, "GPU-1:2.3_4");
  for (const char* none :
       {"", "/dev/nvidia0", "nvidia.com/gpu", "nvidia.com/gpu=", "=0", "gpu=0", "/gpu=0",
        "nvidia.com/=0", "1v/gpu=0", "nv/1g=0", "nv./gpu=0", "nv/gpu-=0", "nv/g/u=0", "nv/gpu=-0",
        "nv/gpu=0-", "nv/gpu=a b", "nv/gpu=a=b", "n/gpu=0", "nv/gp u=0"})
    EXPECT_FALSE(ParseName(none)) << none;
  EXPECT_TRUE(ParseName("nv/gpu=0"));
  EXPECT_EQ(FileName("nvidia.com/gpu"), "nvidia.com-gpu");
}

}  // namespace
}  // namespace penstock::api::cdi
