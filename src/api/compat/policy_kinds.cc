// Facts of NVIDIA's GPU Operator (controllers/state_manager.go, assets/*/*service.yaml at 26.7) and
// of AMD's (api/v1alpha1/deviceconfig_types.go, internal/controllers at 1050202f).
#include "api/compat/policy_kinds.h"

#include <algorithm>

#include "api/compat/amd/device_config.h"
#include "api/compat/nvidia/cluster_policy.h"
#include "api/compat/nvidia/driver_names.h"
#include "api/compat/nvidia/gpu_cluster.h"
#include "api/labels.h"

namespace penstock::api::compat {

namespace {

// Kinds that are the first of theirs have nothing before them.

base::Result<PolicyTranslation> ReadPolicy(std::string_view object, const PenstockSpec*) {
  return TranslateClusterPolicy(object);
}

base::Result<PolicyTranslation> AnswerCluster(std::string_view object, const PenstockSpec*) {
  ASSIGN(auto answers, AnswerGpuCluster(object));
  return PolicyTranslation{.answers = std::move(answers)};
}

}  // namespace

const std::vector<PolicyKind>& PolicyKinds() {
  static const std::vector<PolicyKind> kinds = {
      {.group = "nvidia.com",
       .version = "v1",
       .plural = "clusterpolicies",
       .kind = "ClusterPolicy",
       .translate = ReadPolicy},
      {.group = "nvidia.com",
       .version = "v1alpha1",
       .plural = "nvidiadrivers",
       .kind = "NVIDIADriver",
       .translate_driver = TranslateNvidiaDriver},
      {.group = "nvidia.com",
       .version = "v1alpha1",
       .plural = "gpuclusters",
       .kind = "GPUCluster",
       .translate = AnswerCluster,
       .not_served =
           "dynamic resource allocation is not served yet; use a ClusterPolicy or a Penstock "
           "object"},
      {.group = "amd.com",
       .version = "v1alpha1",
       .plural = "deviceconfigs",
       .kind = "DeviceConfig",
       .translate = TranslateDeviceConfig,
       .namespaced = true,
       .vendor = "amd",
       .foreign_finalizer = "amd.node.kubernetes.io/deviceconfig-finalizer"}};
  return kinds;
}

bool IsForeignDefinition(std::string_view name,
                         const std::map<std::string, std::string>& annotations) {
  return annotations.contains(std::string(kForeignDefinition)) &&
         std::ranges::any_of(PolicyKinds(), [&](const PolicyKind& kind) {
           return !kind.foreign_finalizer.empty() && name == kind.plural + "." + kind.group;
         });
}

const PolicyKind& PenstockKind() {
  static const PolicyKind kind{
      .group = "penstock.io", .version = "v1alpha1", .plural = "penstocks", .kind = "Penstock"};
  return kind;
}

const std::vector<std::string>& DeviceLabels() {
  static const std::vector<std::string> labels = [] {
    std::vector<std::string> all;
    for (const char* device : {"10de", "0300_10de", "0302_10de"})
      all.push_back(std::string(kFeaturePrefix) + "pci-" + device + ".present");
    return all;
  }();
  return labels;
}

bool HasDevices(const std::map<std::string, std::string>& labels, std::string_view present) {
  const auto is_true = [&labels](std::string_view key) {
    const auto found = labels.find(std::string(key));
    return found != labels.end() && found->second == "true";
  };
  return (!present.empty() && is_true(present)) || std::ranges::any_of(DeviceLabels(), is_true);
}

const std::vector<ConditionalMark>& ConditionalMarks() {
  static const std::vector<ConditionalMark> marks = {
      {"nvidia.com/mig.capable", "nvidia.com/gpu.deploy.mig-manager", "true"},
      {"nvidia.com/mig.capable", "nvidia.com/mig.config", ""}};
  return marks;
}

const NodeMarks& AllMarks() {
  static const NodeMarks marks = AllPolicyMarks();
  return marks;
}

const std::pair<std::string, std::string>& HostDriverMark() {
  static const std::pair<std::string, std::string> mark(kDeployDriverLabel, kPreInstalled);
  return mark;
}

bool OnlyReadsDevices(std::string_view daemon_set) {
  return daemon_set == "nvidia-dcgm" || daemon_set == "nvidia-dcgm-exporter" ||
         daemon_set == "nvidia-node-status-exporter";
}

bool InstallsDrivers(std::string_view daemon_set) {
  return daemon_set.starts_with("nvidia-driver-") || daemon_set.starts_with("nvidia-gpu-driver-") ||
         daemon_set.starts_with("nvidia-vgpu-");
}

std::string PortName(std::string_view service) {
  if (service == "nvidia-dcgm-exporter") return "gpu-metrics";
  if (service == "nvidia-dcgm") return "dcgm";
  if (service == "nvidia-node-status-exporter") return "node-status";
  return "metrics";
}

}  // namespace penstock::api::compat
