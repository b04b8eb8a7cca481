#include "hook/runtime/bundle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace penstock::hook::runtime {
namespace {

using api::cdi::CdiEdits;
using testing::Contains;
using testing::HasSubstr;
using testing::Key;

Bundle Parse(std::string_view text) {
  auto bundle = Bundle::Parse(text, "config.json");
  EXPECT_TRUE(bundle.ok()) << bundle.error().message();
  return *std::move(bundle);
}

std::string ErrorOf(std::string_view text) {
  const auto bundle = Bundle::Parse(text, "config.json");
  return bundle.ok() ? "" : bundle.error().message();
}

std::string Applied(std::string_view text, const CdiEdits& edits) {
  Bundle bundle = Parse(text);
  bundle.Apply(edits);
  return bundle.ToText();
}

TEST(Bundle, KeepsWhatItDoesNotKnowInItsOrder) {
  const std::string text =
      R"({"zeta":{"b":[1,-2,3.5,18446744073709551615],"a":null},"ociVersion":"9.9","mounts":null,"new":{"":"\u001f\"ä"}})";
  EXPECT_EQ(Parse(text).ToText(), text);
  EXPECT_EQ(Applied(text, {}), text);
}

TEST(Bundle, IsReadAlsoWhereEverythingIsMissing) {
  for (const char* text :
       {"{}", R"({"process":null,"annotations":null,"mounts":null,"linux":null,"hooks":null})",
        R"({"process":{"env":null,"user":null,"capabilities":null},"hooks":{"prestart":null}})"}) {
    Bundle bundle = Parse(text);
    const RuntimeFacts facts = bundle.facts();
    EXPECT_TRUE(facts.environment.empty() && facts.annotations.empty() && facts.mounts.empty() &&
                !facts.privileged);
    EXPECT_FALSE(bundle.RemoveStaleHooks());
    EXPECT_EQ(bundle.ToText(), text);
  }
}

TEST(Bundle, ReportsWhatMatters) {
  const RuntimeFacts facts =
      Parse(
          R"({"process":{"env":["A=1","B=x=y","A=2","NOTHING"],"capabilities":{"bounding":["CAP_CHOWN","CAP_SYS_ADMIN"]}},
    "mounts":[{"destination":"/a","source":"/b"},{"destination":"/proc"}],"annotations":{"k":"v"}})")
          .facts();
  EXPECT_EQ(facts.Get("A"), "2");
  EXPECT_EQ(facts.Get("B"), "x=y");
  EXPECT_FALSE(facts.Has("NOTHING"));
  ASSERT_EQ(facts.mounts.size(), 2u);
  EXPECT_EQ(facts.mounts[0].source, "/b");
  EXPECT_EQ(facts.mounts[1].source, "");
  EXPECT_TRUE(facts.privileged);
  EXPECT_FALSE(
      Parse(
          R"({"process":{"capabilities":{"effective":["CAP_SYS_ADMIN"],"bounding":["CAP_CHOWN"]}}})")
          .facts()
          .privileged);
}

TEST(Bundle, ReportsAContainersAnnotationsFromItsPods) {
  const auto own = [](const std::string& annotations) {
    return Parse("{\"annotations\":{" + annotations + "}}").facts().own_annotations;
  };
  const RuntimeFacts::Annotations given = {{"cdi.k8s.io/x", "a.com/class=c"}};
  const std::string asks = R"("cdi.k8s.io/x":"a.com/class=c")",
                    crio = R"(,"io.kubernetes.cri-o.ContainerID":"1")";
  EXPECT_EQ(own(asks), given) << "podman, docker";
  EXPECT_THAT(
      own(asks +
          R"(,"io.kubernetes.cri.sandbox-id":"1","io.kubernetes.cri.container-type":"container")"),
      Contains(Key("cdi.k8s.io/x")));
  // CRI-O: only the annotations in its own JSON count, whatever else is set.
  const std::string json = R"(,"io.kubernetes.cri-o.Annotations":)";
  EXPECT_EQ(own(asks + crio + json + R"("{\"cdi.k8s.io/x\":\"a.com/class=c\"}")"), given);
  EXPECT_EQ(own(R"("cdi.k8s.io/x":"all")" + crio + json +
                R"("{\"cdi.k8s.io/x\":\"a.com/class=c\",\"n\":1}")"),
            given);
  for (const std::string& text : {std::string(), json + R"("{}")", json + "\"\"", json + R"("[1")",
                                  json + "\"" + std::string(5000, '[') + "\""})
    EXPECT_TRUE(own(asks + crio + text).empty()) << text.substr(0, 60);
  // In a pod's sandbox container, that JSON has the pod's annotations.
  EXPECT_TRUE(own(asks + crio + R"(,"io.kubernetes.cri-o.ContainerType":"sandbox")" + json +
                  R"("{\"cdi.k8s.io/x\":\"a.com/class=c\"}")")
                  .empty());
  EXPECT_TRUE(own(asks + R"(,"io.kubernetes.cri.container-type":"sandbox")").empty());
}

TEST(Bundle, RefusesWhatIsNone) {
  EXPECT_THAT(ErrorOf(""), HasSubstr("config.json is not JSON"));
  EXPECT_THAT(ErrorOf("{\"a\":1"), HasSubstr("is not JSON"));
  EXPECT_THAT(ErrorOf("{\"a\":\"\xff\"}"), HasSubstr("is not JSON"));
  EXPECT_THAT(ErrorOf("[]"), HasSubstr("the whole is array where an object is expected"));
  EXPECT_THAT(ErrorOf(R"({"process":{"env":"A=1"}})"),
              HasSubstr("/process/env is string where a list is expected"));
  EXPECT_THAT(ErrorOf(R"({"process":{"env":[1]}})"),
              HasSubstr("an item of /process/env is number where a string is expected"));
  EXPECT_THAT(ErrorOf(R"({"annotations":{"a":1}})"), HasSubstr("/annotations"));
  EXPECT_THAT(ErrorOf(R"({"mounts":["x"]})"), HasSubstr("/mounts"));
  EXPECT_THAT(ErrorOf(R"({"hooks":{"prestart":{}}})"), HasSubstr("/hooks"));
  EXPECT_THAT(ErrorOf(R"({"linux":{"resources":{"devices":{}}}})"),
              HasSubstr("/linux/resources/devices"));
  EXPECT_THAT(ErrorOf(std::string(100000, '[')), HasSubstr("nests deeper than 64 levels"));
  EXPECT_EQ(ErrorOf("{\"a\":\"" + std::string(1000, '[') + "\\\"" + std::string(1000, '{') + "\"}"),
            "");
}

TEST(Bundle, GetsVariablesInThePlaceOfTheirNamesakes) {
  CdiEdits edits;
  edits.env = {"NVIDIA_VISIBLE_DEVICES=void", "NEW=1", "NEW=2"};
  EXPECT_EQ(
      Applied(
          R"({"process":{"env":["A=1","NVIDIA_VISIBLE_DEVICES=all","B=2","NVIDIA_VISIBLE_DEVICES=0"]}})",
          edits),
      R"({"process":{"env":["A=1","NVIDIA_VISIBLE_DEVICES=void","B=2","NEW=2"]}})");
  EXPECT_EQ(Applied("{}", edits), R"({"process":{"env":["NVIDIA_VISIBLE_DEVICES=void","NEW=2"]}})");
}

TEST(Bundle, GetsDevicesWithTheirRules) {
  CdiEdits edits;
  edits.nodes = {{.path = "/dev/nvidia0", .type = "c", .major = 195, .minor = 0, .file_mode = 438},
                 {.path = "/dev/pipe", .type = "p", .uid = 0, .gid = 44},
                 {.path = "/dev/none", .type = "c", .major = 1, .minor = 2, .permissions = "none"},
                 {.path = "/dev/ro", .type = "b", .major = 8, .minor = 0, .permissions = "r"}};
  const std::string once = Applied(
      R"({"linux":{"devices":[{"path":"/dev/nvidia0","type":"c","major":1,"minor":1},{"path":"/dev/x"}]}})",
      edits);
  EXPECT_EQ(
      once,
      R"({"linux":{"devices":[{"path":"/dev/x"},{"path":"/dev/nvidia0","type":"c","major":195,"minor":0,"fileMode":438},)"
      R"({"path":"/dev/pipe","type":"p","uid":0,"gid":44},{"path":"/dev/none","type":"c","major":1,"minor":2},)"
      R"({"path":"/dev/ro","type":"b","major":8,"minor":0}],"resources":{"devices":[)"
      R"({"allow":true,"type":"c","major":195,"minor":0,"access":"rwm"},{"allow":true,"type":"b","major":8,"minor":0,"access":"r"}]}}})");
  EXPECT_EQ(Applied(once, edits), once) << "twice is once";
}

TEST(Bundle, DevicesBelongToTheProcessUnlessTheSpecificationSaysIt) {
  CdiEdits edits;
  edits.nodes = {{.path = "/dev/a", .type = "c", .major = 195, .minor = 0},
                 {.path = "/dev/b", .type = "c", .major = 195, .minor = 1, .gid = 5}};
  EXPECT_THAT(
      Applied(R"({"process":{"user":{"uid":1000,"gid":0}}})", edits),
      HasSubstr(R"("devices":[{"path":"/dev/a","type":"c","major":195,"minor":0,"uid":1000},)"
                R"({"path":"/dev/b","type":"c","major":195,"minor":1,"uid":1000,"gid":5}])"));
}

TEST(Bundle, GetsMountsInThePlaceOfOthersAndOuterFoldersFirst) {
  CdiEdits edits;
  edits.mounts = {
      {.host_path = "/host/lib", .container_path = "/usr/lib/x.so", .options = {"ro", "rbind"}},
      {.host_path = "/host/run", .container_path = "/run", .type = "bind"}};
  EXPECT_EQ(
      Applied(
          R"({"mounts":[{"destination":"/usr/lib/deep/er"},{"destination":"/usr/lib/x.so","source":"/old"},{"destination":"/proc"},)"
          R"({"destination":"/dev/pts"},{"destination":"/"}]})",
          edits),
      R"({"mounts":[{"destination":"/proc"},{"destination":"/"},{"destination":"/run","type":"bind","source":"/host/run"},)"
      R"({"destination":"/dev/pts"},{"destination":"/usr/lib/x.so","source":"/host/lib","options":["ro","rbind"]},)"
      R"({"destination":"/usr/lib/deep/er"}]})");
  edits.mounts.clear();
  EXPECT_EQ(Applied(R"({"mounts":[{"destination":"/a/b"},{"destination":"/a"}]})", edits),
            R"({"mounts":[{"destination":"/a/b"},{"destination":"/a"}]})");
}

// CVE-2025-23266: a hook without an environment of its own got the container's, including
// LD_PRELOAD.
TEST(Bundle, HooksHaveAnEnvironmentOfTheirOwn) {
  CdiEdits edits;
  edits.hooks = {{.name = "createContainer",
                  .path = "/usr/bin/penstock-hook",
                  .args = {"penstock-hook", "update-ldcache"}},
                 {.name = "poststop", .path = "/x", .env = {"A=1"}, .timeout = 5}};
  const std::string once =
      Applied(R"({"process":{"env":["LD_PRELOAD=/proc/self/cwd/poc.so"]}})", edits);
  EXPECT_EQ(
      once,
      R"({"process":{"env":["LD_PRELOAD=/proc/self/cwd/poc.so"]},"hooks":{"createContainer":[)"
      R"({"path":"/usr/bin/penstock-hook","args":["penstock-hook","update-ldcache"],)"
      R"("env":["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"]}],)"
      R"("poststop":[{"path":"/x","env":["A=1"],"timeout":5}]}})");
  EXPECT_EQ(Applied(once, edits), once) << "an engine that knows CDI has added them already";
}

TEST(Bundle, GetsTheRest) {
  CdiEdits edits;
  edits.additional_gids = {0, 44, 44, 7};
  edits.intel_rdt = {.clos_id = "x", .schemata = {"MB:0=10"}, .enable_monitoring = true};
  edits.net_devices = {{.host_interface = "ib0", .name = "eth1"}};
  EXPECT_EQ(
      Applied(
          R"({"process":{"user":{"additionalGids":[44]}},"linux":{"netDevices":{"a":{"name":"b"}}}})",
          edits),
      R"({"process":{"user":{"additionalGids":[44,7]}},"linux":{"netDevices":{"a":{"name":"b"},"ib0":{"name":"eth1"}},)"
      R"("intelRdt":{"closID":"x","schemata":["MB:0=10"],"enableMonitoring":true}}})");
}

TEST(Bundle, LosesHooksOfNvidiasOlderRuntime) {
  Bundle bundle = Parse(
      R"({"hooks":{"prestart":[{"path":"/usr/bin/nvidia-container-runtime-hook","args":["x","prestart"]},{"path":"/usr/bin/other"},
    {"path":"nvidia-container-toolkit"}],"createRuntime":[{"path":"/a"}]}})");
  EXPECT_TRUE(bundle.RemoveStaleHooks());
  EXPECT_EQ(
      bundle.ToText(),
      R"({"hooks":{"prestart":[{"path":"/usr/bin/other"}],"createRuntime":[{"path":"/a"}]}})");
  EXPECT_FALSE(bundle.RemoveStaleHooks());
}

}  // namespace
}  // namespace penstock::hook::runtime
