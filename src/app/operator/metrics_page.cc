#include "app/operator/metrics_page.h"

namespace penstock::app {
namespace {

void Family(std::string& page, const char* name, const char* type, const char* help) {
  page += std::string("# HELP ") + name + " " + help + "\n# TYPE " + name + " " + type + "\n";
}

void Sample(std::string& page, const char* name, const std::string& labels, std::uint64_t value) {
  page += std::string(name) + (labels.empty() ? "" : "{" + labels + "}") + " " +
          std::to_string(value) + "\n";
}

/// Reasons come from the nodes.
std::string Label(const char* key, const std::string& value) {
  std::string text = std::string(key) + "=\"";
  for (const char c : value) {
    if (c == '"' || c == '\\') text += '\\';
    text += c == '\n' ? ' ' : c;
  }
  return text + "\"";
}

void Add(std::string& page, const cluster::Operator::Numbers& now) {
  Family(page, "penstock_operator_policies", "gauge", "Policies in the cluster.");
  Sample(page, "penstock_operator_policies", "", now.policies);
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
    Sample(page, "penstock_operator_writes_total", Label("what", what), count);
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
