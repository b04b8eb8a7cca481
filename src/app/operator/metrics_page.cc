#include "app/operator/metrics_page.h"

#include <chrono>

#include "api/compat/nvidia/operator_metrics.h"

namespace penstock::app {
namespace {

void Family(std::string& page, const std::string& name, std::string_view type,
            std::string_view help) {
  page += "# HELP " + name + " ";
  page += help;
  page += "\n# TYPE " + name + " ";
  page += type;
  page += '\n';
}

void Sample(std::string& page, const std::string& name, const std::string& labels,
            std::int64_t value) {
  page += name + (labels.empty() ? "" : "{" + labels + "}") + " " + std::to_string(value) + "\n";
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

api::compat::ReconciliationStatus StatusOf(const cluster::Operator::Numbers& now) {
  using enum api::compat::ReconciliationStatus;
  if (now.passes.last_failed) return kError;
  if (now.policies == 0) return kNoPolicy;
  return now.passes.last_ready ? kSuccess : kNotReady;
}

api::compat::OperatorFacts FactsOf(const cluster::Operator::Numbers& now) {
  api::compat::OperatorFacts facts{.device_nodes = now.device_nodes,
                                   .status = StatusOf(now),
                                   .reconciliations = now.passes.all,
                                   .failed_reconciliations = now.passes.failed,
                                   .automatic_upgrades = now.automatic_upgrades};
  if (now.passes.succeeded)
    facts.succeeded =
        std::chrono::floor<std::chrono::seconds>(*now.passes.succeeded).time_since_epoch().count();
  for (const cluster::DriverOutcome& driver : now.drivers) {
    facts.underway += driver.counts.underway;
    facts.done += driver.counts.done;
    facts.failed += driver.counts.failed;
    facts.required += driver.counts.required;
    facts.available += driver.counts.available;
  }
  return facts;
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
  for (const auto& metric : api::compat::OperatorFamilies(FactsOf(now))) {
    const std::string name(metric.name);
    Family(page, name, metric.type, metric.help);
    Sample(page, name, "", metric.value);
  }
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
