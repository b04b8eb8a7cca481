// The metrics of the GPU Operator itself, which alerts and consoles read. Source: gpu-operator,
// controllers/operator_metrics.go; k8s-operator-libs, pkg/upgrade (26.7). Pure.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace penstock::api::compat {

/// The values of gpu_operator_reconciliation_status.
enum class ReconciliationStatus : std::int8_t {
  kSuccess = 1,
  kNotReady = 0,
  kNoPolicy = -1,
  kError = -2,
};

/// What the metrics are made of.
struct OperatorFacts {
  std::uint64_t device_nodes = 0;
  ReconciliationStatus status = ReconciliationStatus::kNotReady;
  std::uint64_t reconciliations = 0, failed_reconciliations = 0;
  std::int64_t succeeded = 0;  ///< Unix time in seconds; 0: never
  bool automatic_upgrades = false;
  /// Nodes of all drivers by the state of their upgrade; one that failed is not underway, too.
  std::uint64_t underway = 0, done = 0, failed = 0, required = 0;
  std::uint64_t available = 0;  ///< nodes that may begin now
};

struct OperatorMetric {
  std::string_view name, type, help;
  std::int64_t value = 0;
};

/// The families, each with one series without labels. Those about NFD's labels and OpenShift's
/// driver toolkit are left out: neither is needed here.
std::vector<OperatorMetric> OperatorFamilies(const OperatorFacts& facts);

}  // namespace penstock::api::compat
