// Computes the configuration of the agents' pods from what is wanted of the cluster: the paths
// within the pod, and what a pod of the operator always has. Pure.
#pragma once

#include <string>

#include "api/cluster/penstock.h"

namespace penstock::cluster {

/// Where things are in an agent's pod (deploy/manifests/penstock.yaml).
inline constexpr std::string_view kDriverRootInPod = "/driver-root";
inline constexpr std::string_view kDevRootInPod = "/dev-root";
inline constexpr std::string_view kLayoutsInPod = "/etc/penstock-layouts";
inline constexpr std::string_view kCountersInPod = "/etc/penstock-counters";
inline constexpr std::string_view kExporterInPod = "/etc/penstock-exporter";
inline constexpr std::string_view kModesInPod = "/etc/penstock-modes";
inline constexpr std::string_view kClientsInPod = "/etc/penstock-clients";
/// On the host and in the pod: the folder of amd::HealthSocket (src/backend/amd/services.cc).
inline constexpr std::string_view kAmdHealthFolder = "/var/lib/amd-metrics-exporter";

/// Where the host has the driver and its device files.
struct HostDriver {
  std::string root = "/";
  std::string dev = "/";
  std::string container;  ///< below the root: where a driver container puts its own
  /// Whether the device files are in a folder of their own, which is mounted, too.
  bool separate_dev() const { return dev != "/" && dev != root; }
};
HostDriver DriverOf(const api::PenstockSpec& spec);

/// The agents' configuration.
api::NodeConfig ConfigOfPod(const api::PenstockSpec& spec, const std::string& namespace_name);

}  // namespace penstock::cluster
