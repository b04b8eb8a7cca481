#include "api/compat/nvidia/operator_metrics.h"

namespace penstock::api::compat {

std::vector<OperatorMetric> OperatorFamilies(const OperatorFacts& facts) {
  const auto count = [](std::uint64_t number) { return static_cast<std::int64_t>(number); };
  return {
      {"gpu_operator_gpu_nodes_total", "gauge", "Number of nodes with GPUs.",
       count(facts.device_nodes)},
      {"gpu_operator_reconciliation_status", "gauge",
       "1 if all policies are ready, 0 if not, -1 without a policy, -2 if something cannot be read "
       "or written.",
       static_cast<std::int64_t>(facts.status)},
      {"gpu_operator_reconciliation_total", "counter", "Reconciliations.",
       count(facts.reconciliations)},
      {"gpu_operator_reconciliation_failed_total", "counter",
       "Reconciliations in which something could not be read or written.",
       count(facts.failed_reconciliations)},
      {"gpu_operator_reconciliation_last_success_ts_seconds", "gauge",
       "When all policies were ready last, in Unix seconds; now, while they are.", facts.succeeded},
      {"gpu_operator_driver_auto_upgrade_enabled", "gauge",
       "1 if drivers are upgraded automatically.", facts.automatic_upgrades ? 1 : 0},
      {"gpu_operator_nodes_upgrades_in_progress", "gauge", "Nodes whose driver is being upgraded.",
       count(facts.underway)},
      {"gpu_operator_nodes_upgrades_done", "gauge", "Nodes whose driver is upgraded.",
       count(facts.done)},
      {"gpu_operator_nodes_upgrades_failed", "gauge", "Nodes on which an upgrade has failed.",
       count(facts.failed)},
      {"gpu_operator_nodes_upgrades_available", "gauge", "Nodes on which an upgrade can begin.",
       count(facts.available)},
      {"gpu_operator_nodes_upgrades_pending", "gauge", "Nodes that wait for their upgrade.",
       count(facts.required)},
  };
}

}  // namespace penstock::api::compat
