#include "protocol/engine/apply/desired_config.h"

#include <gmock/gmock.h>

#include "base/core/testing/must.h"
#include "protocol/engine/text/line_diff.h"

namespace penstock::protocol::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

const RuntimeHandler kNvidia = {"nvidia", "/opt/penstock/penstock-runtime"};
constexpr char kMain[] = "/etc/containerd/config.toml",
               kDropIn[] = "/etc/containerd/conf.d/99-penstock.toml";

EngineFacts Containerd(int major, int minor, const std::optional<std::string>& main) {
  return {.name = "containerd",
          .major = major,
          .minor = minor,
          .main = {kMain, main},
          .drop_in = {kDropIn, std::nullopt}};
}

/// Returns what would be written, as `diff -u` without its head and positions; or the error.
std::string Written(const EngineFacts& facts, const DesiredConfig& desired) {
  const auto goal = MakeGoal(facts, desired);
  if (!goal.ok()) return "error: " + goal.error().message();
  std::string text;
  for (const Target& target : goal->targets) {
    text += target.path + "\n";
    const std::string diff = Unified(target.path, target.before, target.after);
    for (const std::string_view line : Lines(diff))
      if ((line[0] == '+' || line[0] == '-') && line.substr(0, 3) != "+++" &&
          line.substr(0, 3) != "---")
        text += line;
  }
  return text;
}

constexpr char kKubeadm[] = R"(version = 2
# by the administrator
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.8"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = true
)";

TEST(Plan, CdiOfContainerd17IsOneLine) {
  EXPECT_EQ(Written(Containerd(1, 7, kKubeadm), {.cdi = true}),
            std::string(kMain) + "\n+  enable_cdi = true\n");
}

TEST(Plan, AVersion2RuntimeTakesOverWhatTheDefaultOneIsSet) {
  EXPECT_EQ(
      Written(Containerd(1, 7, kKubeadm), {.handlers = {kNvidia}, .default_handler = "nvidia"}),
      std::string(kMain) + R"(
-    default_runtime_name = "runc"
+    default_runtime_name = "nvidia"
+
+[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
+runtime_type = "io.containerd.runc.v2"
+container_annotations = ["cdi.k8s.io/*"]
+
+[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
+SystemdCgroup = true
+BinaryName = "/opt/penstock/penstock-runtime"
)");
}

TEST(Plan, ContainerdBefore17HasNoCdiAndSaysSo) {
  EXPECT_THAT(Written(Containerd(1, 6, kKubeadm), {.cdi = true}),
              HasSubstr("containerd 1.6 does not support CDI (1.7 and newer do)"));
  EXPECT_THAT(Written(Containerd(1, 6, kKubeadm), {.handlers = {kNvidia}}),
              HasSubstr("+BinaryName = "));
}

TEST(Plan, AVersion1FileIsEditedUnderItsOwnNames) {
  const std::string text =
      "[plugins]\n  [plugins.cri.containerd.runtimes.runc]\n    runtime_type = "
      "\"io.containerd.runtime.v1.linux\"\n";
  EXPECT_EQ(Written(Containerd(1, 6, text), {.handlers = {kNvidia}}), std::string(kMain) + R"(
+
+[plugins.cri.containerd.runtimes.nvidia]
+runtime_type = "io.containerd.runtime.v1.linux"
+container_annotations = ["cdi.k8s.io/*"]
+
+[plugins.cri.containerd.runtimes.nvidia.options]
+Runtime = "/opt/penstock/penstock-runtime"
)");
}

TEST(Plan, AFirstRuntimeInTheFilesOfContainerd1DoesNotEndRunc) {
  const std::string written = Written(Containerd(1, 7, "version = 2\n"), {.handlers = {kNvidia}});
  EXPECT_THAT(written,
              HasSubstr("containerd.runtimes.runc]\n+runtime_type = \"io.containerd.runc.v2\"\n"));
  EXPECT_THAT(Written(Containerd(2, 0, "version = 2\n"), {.handlers = {kNvidia}}),
              testing::Not(HasSubstr("runtimes.runc")));
}

TEST(Plan, ContainerdThatMergesGetsADropInAndTheImportOfItsFolder) {
  const std::string text = "version = 3\n\n[plugins.'io.containerd.cri.v1.runtime']\n  x = 1\n";
  EXPECT_EQ(Written(Containerd(2, 1, text), {.handlers = {kNvidia}}), std::string(kDropIn) + R"(
+# Written by Penstock; `penstock runtime unconfigure` removes it.
+version = 3
+
+[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]
+runtime_type = "io.containerd.runc.v2"
+container_annotations = ["cdi.k8s.io/*"]
+
+[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia.options]
+BinaryName = "/opt/penstock/penstock-runtime"
/etc/containerd/config.toml
+imports = ["/etc/containerd/conf.d/*.toml"]
)");
  EXPECT_THAT(Written(Containerd(2, 2, "version = 4\nimports = [\"conf.d/*.toml\"]\n"),
                      {.handlers = {kNvidia}}),
              testing::Not(HasSubstr("config.toml")));
}

TEST(Plan, AnImportThatReplacesTheTableIsTheFileThatIsEdited) {
  EngineFacts facts = Containerd(
      1, 7,
      "version = 2\nimports = "
      "[\"/etc/containerd/cri.toml\"]\n[plugins.\"io.containerd.grpc.v1.cri\"]\na = 1\n");
  facts.imported = {
      {"/etc/containerd/other.toml", "[plugins.x]\n"},
      {"/etc/containerd/cri.toml", "[plugins.\"io.containerd.grpc.v1.cri\"]\nb = 1\n"}};
  EXPECT_EQ(Written(facts, {.cdi = true}), "/etc/containerd/cri.toml\n+enable_cdi = true\n");
}

TEST(Plan, ADropInThatWouldReplaceTheTableIsRefused) {
  EngineFacts facts = Containerd(1, 7, kKubeadm);
  facts.drop_in_wanted = true;
  EXPECT_THAT(Written(facts, {.cdi = true}),
              HasSubstr("would replace the whole table plugins.\"io.containerd.grpc.v1.cri\" of " +
                        std::string(kMain)));
  facts.main.text = "version = 2\nimports = [\"/etc/containerd/conf.d/*.toml\"]\n";
  EXPECT_EQ(Written(facts, {.cdi = true}), std::string(kDropIn) + R"(
+# Written by Penstock; `penstock runtime unconfigure` removes it.
+version = 2
+
+[plugins."io.containerd.grpc.v1.cri"]
+enable_cdi = true
)");
}

TEST(Plan, WhatIsInForceAlreadyNeedsNoLine) {
  EngineFacts facts = Containerd(2, 1, std::nullopt);
  facts.effective = "version = 3\n[plugins.'io.containerd.cri.v1.runtime']\nenable_cdi = true\n";
  const auto goal = Must(MakeGoal(facts, {.cdi = true}));
  EXPECT_THAT(goal.targets, IsEmpty());
  EXPECT_THAT(goal.remarks, ElementsAre("containerd already has CDI enabled"));
  facts.effective = "version = 3\n[plugins.'io.containerd.cri.v1.runtime']\nenable_cdi = false\n";
  EXPECT_THAT(Written(facts, {.cdi = true}), HasSubstr("+enable_cdi = true\n"));
}

TEST(Plan, RuntimesThatOnlyTheEngineKnowsAreCopiedFromWhatItSays) {
  EngineFacts facts = Containerd(1, 7, "version = 2\n");
  facts.effective = R"([plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
snapshotter = ""
privileged_without_host_devices = false
pod_annotations = ["x"]
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = true
Root = ""
)";
  const std::string written = Written(facts, {.handlers = {kNvidia}});
  EXPECT_THAT(written, HasSubstr("runtimes.runc]\n+runtime_type = "
                                 "\"io.containerd.runc.v2\"\n+pod_annotations = [\"x\"]\n"));
  EXPECT_THAT(written,
              HasSubstr("runtimes.nvidia.options]\n+SystemdCgroup = true\n+BinaryName = "));
  EXPECT_THAT(written, testing::Not(HasSubstr("snapshotter")));
}

TEST(Plan, UnknownVersionsAndInlineTablesAreLeftAloneWithTheLinesToWrite) {
  EXPECT_THAT(Written(Containerd(2, 1, "version = 1\n"), {.handlers = {kNvidia}}),
              HasSubstr("`containerd config migrate`"));
  EXPECT_THAT(Written(Containerd(2, 9, "version = 7\n"), {.handlers = {kNvidia}}),
              HasSubstr("configuration version 7 is not supported"));
  EXPECT_THAT(
      Written(Containerd(1, 7, "version = 2\nplugins = {\"io.containerd.grpc.v1.cri\" = {}}\n"),
              {.cdi = true}),
      HasSubstr("plugins is an inline table, which is not edited: write "
                "\"io.containerd.grpc.v1.cri\".enable_cdi = true into it; add these lines "
                "manually:\n[plugins.\"io.containerd.grpc.v1.cri\"]\nenable_cdi = true\n"));
  EXPECT_THAT(Written(Containerd(1, 7, "version = 2\n[\n"), {.cdi = true}),
              HasSubstr(std::string(kMain) + ":2:"));
}

TEST(Plan, AContainerdWhoseCriPluginIsOffIsNotConfiguredForNoOne) {
  EXPECT_THAT(
      Written(Containerd(1, 7, "disabled_plugins = [\"cri\"]\nversion = 2\n"), {.cdi = true}),
      HasSubstr("pass --runtime docker"));
}

TEST(Plan, ARequestThatContradictsItselfIsRefused) {
  EXPECT_THAT(Written(Containerd(1, 7, ""), {.handlers = {{"nvidia", "runtime"}}}),
              HasSubstr("must be absolute"));
  EXPECT_THAT(Written(Containerd(1, 7, ""), {.default_handler = "nvidia"}),
              HasSubstr("is not one of the configured runtimes"));
}

EngineFacts K3s(int major, int minor, const std::string& main) {
  const std::string folder = "/var/lib/rancher/k3s/agent/etc/containerd/";
  return {.style = ConfigStyle::kTemplated,
          .name = "k3s",
          .major = major,
          .minor = minor,
          .main = {folder + "config.toml", main},
          .drop_in = {folder + "config-v3.toml.d/99-penstock.toml", std::nullopt},
          .template_file = {folder + "config.toml.tmpl", std::nullopt}};
}

TEST(Plan, K3sGetsATemplateThatAddsToItsOwn) {
  EXPECT_EQ(Written(K3s(1, 7, kKubeadm), {.handlers = {kNvidia}}),
            R"(/var/lib/rancher/k3s/agent/etc/containerd/config.toml.tmpl
+{{/* Written by Penstock; `penstock runtime unconfigure` removes it. */}}
+{{ template "base" . }}
+
+[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]
+runtime_type = "io.containerd.runc.v2"
+container_annotations = ["cdi.k8s.io/*"]
+
+[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]
+SystemdCgroup = true
+BinaryName = "/opt/penstock/penstock-runtime"
)");
}

TEST(Plan, K3sWithDropInsGetsOne) {
  const std::string main =
      "version = 3\nimports = "
      "[\"/var/lib/rancher/k3s/agent/etc/containerd/config-v3.toml.d/*.toml\"]\n";
  EXPECT_THAT(Written(K3s(2, 1, main), {.handlers = {kNvidia}}),
              HasSubstr("/config-v3.toml.d/99-penstock.toml\n+# Written by Penstock"));
  EXPECT_THAT(Written(K3s(2, 1, "version = 3\n"), {.handlers = {kNvidia}}),
              HasSubstr("config.toml.tmpl\n+{{/* Written"));
}

TEST(Plan, WhatATemplateCannotSayIsLeftToTheAdministrator) {
  EXPECT_THAT(Written(K3s(1, 7, kKubeadm), {.cdi = true}), HasSubstr("with CDI off; change"));
  EXPECT_THAT(Written(K3s(1, 7, kKubeadm), {.handlers = {kNvidia}, .default_handler = "nvidia"}),
              HasSubstr("write `default-runtime: nvidia` into /etc/rancher/k3s/config.yaml"));
  EngineFacts own = K3s(1, 7, kKubeadm);
  own.template_file.text = "{{ template \"base\" . }}\n# mine\n";
  EXPECT_THAT(Written(own, {.handlers = {kNvidia}}),
              HasSubstr("is a custom template, which is not changed; change"));
}

TEST(Plan, ARuntimeThatK3sFoundByItselfIsNotWrittenTwice) {
  const std::string found = std::string(kKubeadm) +
                            "[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.nvidia."
                            "options]\nBinaryName = \"/opt/penstock/penstock-runtime\"\n";
  EXPECT_EQ(Written(K3s(1, 7, found), {.handlers = {kNvidia}}), "");
  EXPECT_THAT(Written(K3s(1, 7, found), {.handlers = {{"nvidia", "/other"}}}),
              HasSubstr("k3s has a runtime nvidia already, which runs /opt/penstock"));
}

TEST(Plan, CrioGetsADropInWithTheDefaultRuntimesSettings) {
  EngineFacts facts{.engine = Engine::kCrio,
                    .name = "crio",
                    .major = 1,
                    .minor = 30,
                    .main = {"/etc/crio/crio.conf", std::nullopt},
                    .drop_in = {"/etc/crio/crio.conf.d/99-penstock.toml", std::nullopt}};
  facts.effective =
      "[crio.runtime]\ndefault_runtime = \"crun\"\n[crio.runtime.runtimes.crun]\nruntime_path = "
      "\"/usr/bin/crun\"\n"
      "monitor_path = \"/usr/bin/conmon\"\nallowed_annotations = "
      "[\"io.containers.trace-syscall\"]\n";
  EXPECT_EQ(Written(facts, {.cdi = true, .handlers = {kNvidia}, .default_handler = "nvidia"}),
            R"(/etc/crio/crio.conf.d/99-penstock.toml
+# Written by Penstock; `penstock runtime unconfigure` removes it.
+
+[crio.runtime.runtimes.nvidia]
+monitor_path = "/usr/bin/conmon"
+allowed_annotations = ["io.containers.trace-syscall"]
+runtime_path = "/opt/penstock/penstock-runtime"
+runtime_type = "oci"
+
+[crio.runtime]
+default_runtime = "nvidia"
)");
  EXPECT_EQ(Written(facts, {.cdi = true}), "");
  facts.minor = 22;
  EXPECT_THAT(Written(facts, {.cdi = true}), HasSubstr("crio 1.22 does not support CDI (1.23"));
}

TEST(Plan, DockerKeepsItsOtherFeatures) {
  EngineFacts facts{
      .engine = Engine::kDocker,
      .name = "docker",
      .major = 27,
      .minor = 0,
      .main = {"/etc/docker/daemon.json", "{\n  \"features\": {\"buildkit\": true}\n}\n"}};
  EXPECT_EQ(Written(facts, {.cdi = true, .handlers = {kNvidia}, .default_handler = "nvidia"}),
            R"(/etc/docker/daemon.json
-  "features": {"buildkit": true}
+  "features": {"buildkit": true, "cdi": true},
+  "runtimes": {
+    "nvidia": {
+      "path": "/opt/penstock/penstock-runtime",
+      "args": []
+    }
+  },
+  "default-runtime": "nvidia"
)");
  facts.major = 24;
  EXPECT_THAT(Written(facts, {.cdi = true}), HasSubstr("docker 24.0 does not support CDI (25.0"));
  facts.major = 29;
  EXPECT_EQ(Written(facts, {.cdi = true}), "");
  facts.main.text = "{\"features\": {\"cdi\": false}}";
  EXPECT_THAT(Written(facts, {.cdi = true}), HasSubstr("\"cdi\": true"));
}

TEST(Plan, PodmanNeedsNothingForCdi) {
  EngineFacts facts{
      .engine = Engine::kPodman,
      .name = "podman",
      .major = 4,
      .minor = 3,
      .main = {"/etc/containers/containers.conf", std::nullopt},
      .drop_in = {"/etc/containers/containers.conf.d/99-penstock.conf", std::nullopt}};
  const auto goal = Must(MakeGoal(facts, {.cdi = true}));
  EXPECT_THAT(goal.targets, IsEmpty());
  EXPECT_THAT(goal.remarks, ElementsAre(HasSubstr("without configuration")));
  EXPECT_THAT(Written(facts, {.handlers = {kNvidia}}),
              HasSubstr("[engine.runtimes]\n+nvidia = [\"/opt/penstock/penstock-runtime\"]\n"));
}

}  // namespace
}  // namespace penstock::protocol::engine
