// What other programs read of the GPU Operator's validator and node status exporter: files in
// /run/nvidia/validations, and metrics. Source: gpu-operator, cmd/nvidia-validator (26.7). Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/report.h"

namespace penstock::api::compat {

/// The folder, in which NVIDIA's other programs expect them.
inline constexpr char kValidationFolder[] = "/run/nvidia/validations";

/// The names of all files in that folder that Penstock writes or removes.
const std::vector<std::string_view>& ValidationFileNames();

/// Where the driver is, as the host sees it. "/": it is the host's own.
struct DriverPlace {
  std::string driver_root = "/", dev_root = "/";
  bool operator==(const DriverPlace&) const = default;
};

/// The vendor that all of this is about.
inline constexpr std::string_view kNodeStatusVendor = "nvidia";

/// The files that have to exist now, with their contents; the others must not exist.
std::map<std::string, std::string> ValidationFiles(const std::vector<ValidationStep>& steps,
                                                   const DriverPlace& driver);

/// What the metrics are made of.
struct NodeStatusFacts {
  std::vector<ValidationStep> steps;
  bool device_plugin = false;                   ///< the kubelet gets devices of this agent
  int offered = 0;                              ///< devices that the kubelet has, shares counted
  int pci_devices = -1;                         ///< -1: not known
  double started = 0;                           ///< Unix time
  double driver_passed = 0, plugin_passed = 0;  ///< until when, as Unix time; 0: never

  /// Takes the steps of a report, and the numbers of accelerators on the bus by vendor.
  void Take(const Report& report, const std::vector<ValidationStep>& now_steps,
            const std::map<std::string, int>& on_bus, double now);
};

struct NodeStatusMetric {
  std::string_view name, help;
  double value = 0;
};

/// The families of node-status-exporter, each with one series whose only label is `node`. `now`:
/// Unix time.
std::vector<NodeStatusMetric> NodeStatusMetrics(const NodeStatusFacts& facts, double now);

}  // namespace penstock::api::compat
