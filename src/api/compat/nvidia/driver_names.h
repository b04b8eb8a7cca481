// Names that NVIDIA's GPU Operator gives labels, annotations, files and objects of its drivers,
// which users, dashboards and other programs select on.
//
// The facts are those of gpu-operator's internal/state, k8s-operator-libs' pkg/upgrade and
// k8s-driver-manager at 26.7.
#pragma once

#include <string_view>

namespace penstock::api::compat {

// Labels of nodes.
inline constexpr std::string_view kUpgradeStateLabel = "nvidia.com/gpu-driver-upgrade-state";
inline constexpr std::string_view kUpgradeSkipLabel = "nvidia.com/gpu-driver-upgrade.skip";
inline constexpr std::string_view kDriverOwnerLabel = "nvidia.com/gpu-operator.driver.owner";
inline constexpr std::string_view kDeployDriverLabel = "nvidia.com/gpu.deploy.driver";
inline constexpr std::string_view kPreInstalled = "pre-installed";  ///< its value
inline constexpr std::string_view kOsIdLabel = "feature.node.kubernetes.io/system-os_release.ID";
inline constexpr std::string_view kOsVersionLabel =
    "feature.node.kubernetes.io/system-os_release.VERSION_ID";
inline constexpr std::string_view kOsTreeLabel =
    "feature.node.kubernetes.io/system-os_release.OSTREE_VERSION";
inline constexpr std::string_view kKernelLabel = "feature.node.kubernetes.io/kernel-version.full";

// Annotations of nodes.
inline constexpr std::string_view kUpgradeEnabled = "nvidia.com/gpu-driver-upgrade-enabled";
inline constexpr std::string_view kInitiallyCordoned =
    "nvidia.com/gpu-driver-upgrade.node-initial-state.unschedulable";
inline constexpr std::string_view kWaitStarted =
    "nvidia.com/gpu-driver-upgrade-wait-for-pod-completion-start-time";
inline constexpr std::string_view kValidationStarted =
    "nvidia.com/gpu-driver-upgrade-validation-start-time";
inline constexpr std::string_view kUpgradeRequested = "nvidia.com/gpu-driver-upgrade-requested";
inline constexpr std::string_view kSafeLoad =
    "nvidia.com/gpu-driver-upgrade.driver-wait-for-safe-load";

// Of pods and DaemonSets.
inline constexpr std::string_view kDrainSkipLabel = "nvidia.com/gpu-driver-upgrade-drain.skip";
inline constexpr std::string_view kLastAppliedHash = "nvidia.com/last-applied-hash";
inline constexpr std::string_view kNodeOsLabel = "nvidia.com/node.os-version";
inline constexpr std::string_view kPrecompiledLabel = "nvidia.com/precompiled";
inline constexpr std::string_view kPrecompiledKernelLabel = "nvidia.com/precompiled.kernel-version";
inline constexpr std::string_view kConfigDigest = "DRIVER_CONFIG_DIGEST";
inline constexpr std::string_view kSafeLoadVariable = "DRIVER_SAFE_LOAD";

/// The vendor whose drivers these are, as agents report it.
inline constexpr std::string_view kDriverVendor = "nvidia";

/// The driver of claims.
inline constexpr std::string_view kClaimDriver = "gpu.nvidia.com";

/// Whether a resource of Kubernetes stands for devices: "nvidia.com/gpu", "nvidia.com/gpu.shared",
/// "nvidia.com/mig-1g.10gb".
constexpr bool IsGpuResource(std::string_view resource) {
  return resource.starts_with("nvidia.com/gpu") || resource.starts_with("nvidia.com/mig-");
}

}  // namespace penstock::api::compat
