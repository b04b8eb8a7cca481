#include "app/operator/metrics_page.h"

namespace penstock::app {
namespace {

void Family(std::string& page, const char* name, const char* type, const char* help) {
  page += std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

void Sample(std::string& page, const char* name, const std::string& labels, std::int64_t value) {
  page += std::string(name) + (labels.empty() ? "" : "{" + labels + "}") + " " +
          std::to_string(value) + "\n";
}

std::int64_t Count(std::uint64_t count) { return static_cast<std::int64_t>(count); }

/// Reasons come from the nodes.
std::string Label(const char* key, const std::string& value) {
  std::string text = std::string(key) + "=\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c == '\n' ? ' ' : c;
  }
  return text + "\"";
}

void AddDrivers(std::string& page, const std::vector<cluster::DriverOutcome>& drivers) {
  Family(
      page, "penstock_operator_driver_nodes", "gauge",
      "Nodes of each driver by the state of its upgrade (done, required, underway, failed, none).");
  for (const cluster::DriverOutcome& driver : drivers) {
    const cluster::UpgradeCounts& counts = driver.counts;
    const std::size_t with = counts.done + counts.required + counts.underway + counts.failed;
    for (const auto& [state, count] :
         {std::pair("done", counts.done), std::pair("required", counts.required),
          std::pair("underway", counts.underway), std::pair("failed", counts.failed),
          std::pair("none", driver.nodes > with ? driver.nodes - with : 0)})
      Sample(page, "penstock_operator_driver_nodes",
             Label("driver", driver.name) + "," + Label("state", state), Count(count));
  }
  Family(page, "penstock_operator_driver_upgrade_stopped", "gauge",
         "1 for each driver of which no further node begins its upgrade, with the reason.");
  for (const cluster::DriverOutcome& driver : drivers)
    if (!driver.gate.empty())
      Sample(page, "penstock_operator_driver_upgrade_stopped",
             Label("driver", driver.name) + "," + Label("reason", driver.gate), 1);
}

/// Those of NVIDIA's operator, with its names and their meaning (controllers/operator_metrics.go).
void AddNvidias(std::string& page, const cluster::Operator::Numbers& now) {
  const auto add = [&page](const char* name, const char* type, const char* help,
                           std::int64_t value) {
    Family(page, name, type, help);
    Sample(page, name, "", value);
  };
  constexpr std::int64_t kSuccess = 1, kNotReady = 0, kNoPolicy = -1, kError = -2;
  const auto& passes = now.passes;
  add("gpu_operator_gpu_nodes_total", "gauge", "Number of nodes with GPUs.",
      Count(now.device_nodes));
  add("gpu_operator_reconciliation_status", "gauge",
      "1 if all policies are ready, 0 if not, -1 without a policy, -2 if something cannot be read "
      "or written.",
      passes.last_failed  ? kError
      : now.policies == 0 ? kNoPolicy
      : passes.last_ready ? kSuccess
                          : kNotReady);
  add("gpu_operator_reconciliation_total", "counter", "Reconciliations.", Count(passes.all));
  add("gpu_operator_reconciliation_failed_total", "counter",
      "Reconciliations in which something could not be read or written.", Count(passes.failed));
  const base::WallTime succeeded = passes.succeeded.value_or(base::WallTime{});
  add("gpu_operator_reconciliation_last_success_ts_seconds", "gauge",
      "When all policies were ready last, in seconds; now, while they are.",
      std::chrono::floor<std::chrono::seconds>(succeeded).time_since_epoch().count());
  add("gpu_operator_driver_auto_upgrade_enabled", "gauge",
      "1 if drivers are upgraded automatically.", now.automatic_upgrades ? 1 : 0);
  cluster::UpgradeCounts all;
  for (const cluster::DriverOutcome& driver : now.drivers) {
    all.done += driver.counts.done;
    all.required += driver.counts.required;
    all.underway += driver.counts.underway;
    all.failed += driver.counts.failed;
    all.available += driver.counts.available;
  }
  add("gpu_operator_nodes_upgrades_in_progress", "gauge", "Nodes whose driver is being upgraded.",
      Count(all.underway));
  add("gpu_operator_nodes_upgrades_done", "gauge", "Nodes whose driver is upgraded.",
      Count(all.done));
  add("gpu_operator_nodes_upgrades_failed", "gauge", "Nodes on which an upgrade has failed.",
      Count(all.failed));
  add("gpu_operator_nodes_upgrades_available", "gauge", "Nodes on which an upgrade can begin.",
      Count(all.available));
  add("gpu_operator_nodes_upgrades_pending", "gauge", "Nodes that wait for their upgrade.",
      Count(all.required));
}

void Add(std::string& page, const cluster::Operator::Numbers& now) {
  Family(page, "penstock_operator_policies", "gauge", "Policies in the cluster.");
  Sample(page, "penstock_operator_policies", "", now.policies);
  Family(page, "penstock_operator_policy_ready", "gauge",
         "1 for each policy that is ready, 0 for each that is not.");
  for (const auto& policy : now.policy_states)
    Sample(page, "penstock_operator_policy_ready",
           Label("kind", policy.kind) + "," + Label("name", policy.name), policy.ready ? 1 : 0);
  Family(page, "penstock_operator_nodes", "gauge",
         "Nodes with devices, by their state (ready, notReady, waiting, optedOut).");
  for (const char* state : {"ready", "notReady", "waiting", "optedOut"}) {
    const auto found = now.fleet.by_state.find(state);
    Sample(page, "penstock_operator_nodes", Label("state", state),
           found == now.fleet.by_state.end() ? 0 : found->second);
  }
  Family(page, "penstock_operator_nodes_not_ready", "gauge",
         "Nodes with devices that are not ready, by their reason.");
  for (const auto& [reason, count] : now.fleet.by_reason)
    Sample(page, "penstock_operator_nodes_not_ready", Label("reason", reason), count);
  Family(page, "penstock_operator_agents", "gauge", "Agents: desired, ready, current.");
  Sample(page, "penstock_operator_agents", Label("state", "desired"),
         static_cast<std::uint64_t>(now.agents.desired));
  Sample(page, "penstock_operator_agents", Label("state", "ready"),
         static_cast<std::uint64_t>(now.agents.ready));
  Sample(page, "penstock_operator_agents", Label("state", "current"),
         static_cast<std::uint64_t>(now.agents.updated));
  Family(page, "penstock_operator_problems", "gauge",
         "What the operator cannot read or write; the policies' condition Error has the texts.");
  Sample(page, "penstock_operator_problems", "", now.problems);
  Family(page, "penstock_operator_writes_total", "counter",
         "Writes since this operator began to act, by what was written.");
  for (const auto& [what, count] : now.writes)
    Sample(page, "penstock_operator_writes_total", Label("what", what), Count(count));
  AddDrivers(page, now.drivers);
  AddNvidias(page, now);
}

}  // namespace

std::string OperatorMetrics(const cluster::Operator::Numbers* numbers,
                            const protocol::kube::Requests& requests) {
  std::string page;
  Family(page, "penstock_operator_leader", "gauge", "1 while this operator acts.");
  Sample(page, "penstock_operator_leader", "", numbers != nullptr ? 1 : 0);
  if (numbers != nullptr) Add(page, *numbers);
  Family(page, "penstock_operator_requests_total", "counter", "Requests to the API server.");
  Sample(page, "penstock_operator_requests_total", Label("kind", "read"), requests.reads);
  Sample(page, "penstock_operator_requests_total", Label("kind", "write"), requests.writes);
  Sample(page, "penstock_operator_requests_total", Label("kind", "watch"), requests.streams);
  Sample(page, "penstock_operator_requests_total", Label("kind", "retry"), requests.retries);
  Sample(page, "penstock_operator_requests_total", Label("kind", "failed"), requests.failures);
  return page;
}

}  // namespace penstock::app
