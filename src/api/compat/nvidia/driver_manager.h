// Environment variables of NVIDIA's k8s-driver-manager, which users set in `manager.env` of a
// driver. The facts are those of its cmd/driver-manager at 26.7.
#pragma once

#include <array>

namespace penstock::api::compat {

inline constexpr char kForceReinstall[] = "FORCE_REINSTALL";
inline constexpr char kPeerMemoryEnabled[] = "GPU_DIRECT_RDMA_ENABLED";
inline constexpr char kUseHostNetworkDriver[] = "USE_HOST_MOFED";

/// Those by which it evicts pods and drains the node: with Penstock, the operator does that, as the
/// driver's `upgradePolicy` says.
inline constexpr std::array<const char*, 7> kDriverManagerEvictions = {
    "ENABLE_GPU_POD_EVICTION",        "ENABLE_AUTO_DRAIN",     "DRAIN_USE_FORCE",
    "DRAIN_POD_SELECTOR_LABEL",       "DRAIN_TIMEOUT_SECONDS", "DRAIN_DELETE_EMPTYDIR_DATA",
    "NODE_LABEL_FOR_GPU_POD_EVICTION"};

}  // namespace penstock::api::compat
