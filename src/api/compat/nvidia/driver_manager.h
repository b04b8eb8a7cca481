// Environment variables of NVIDIA's k8s-driver-manager, which users set in `manager.env` of a
// driver. The facts are those of its cmd/driver-manager at 26.7.
#pragma once

#include <array>
#include <string_view>

namespace penstock::api::compat {

inline constexpr char kForceReinstall[] = "FORCE_REINSTALL";
inline constexpr char kPeerMemoryEnabled[] = "GPU_DIRECT_RDMA_ENABLED";
inline constexpr char kUseHostNetworkDriver[] = "USE_HOST_MOFED";

struct DriverManagerEviction {
  std::string_view name;
  std::string_view usual;  ///< asks for what the operator does by default
};

/// Those by which it evicts pods and drains the node: with Penstock, the operator does that, as the
/// driver's `upgradePolicy` says.
inline constexpr std::array<DriverManagerEviction, 7> kDriverManagerEvictions = {
    {{"ENABLE_GPU_POD_EVICTION", "true"},
     {"ENABLE_AUTO_DRAIN", "false"},
     {"DRAIN_USE_FORCE", "false"},
     {"DRAIN_POD_SELECTOR_LABEL", ""},
     {"DRAIN_TIMEOUT_SECONDS", "0s"},
     {"DRAIN_DELETE_EMPTYDIR_DATA", "false"},
     {"NODE_LABEL_FOR_GPU_POD_EVICTION", ""}}};

}  // namespace penstock::api::compat
