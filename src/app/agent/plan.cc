// A proposal of the configuration, shown on the node.
#include "app/agent/plan.h"

#include <utility>

#include "node/allocate/explain.h"

namespace penstock::app {

namespace {

/// What is in force is explained, not what is planned: it is what requests meet.
void Explain(const api::NodeConfig& config, const door::PreviewNode& node, api::Plan& plan) {
  auto explained = node::allocate::Explain(door::MakePreview(config, node).offers, config.sharing.policy, node.inventory, node.ledger);
  plan.devices = std::move(explained.devices);
  plan.choices = std::move(explained.choices);
}

}  // namespace

base::Result<std::string> PlanFor(const edge::broker::PlanRequest& request, const Configuration& configuration,
                                  const door::PreviewNode& node) {
  ASSIGN(Proposal proposal, request.text ? configuration.Propose(*request.text, request.name) : configuration.ProposeCurrent());
  api::Plan plan = door::MakePlan(configuration.published().Get()->config, proposal.config, proposal.after_restart, node);
  plan.origin = std::move(proposal.origin);
  plan.changes = std::move(proposal.changes);
  plan.not_yet = std::move(proposal.not_yet);
  plan.remarks.insert(plan.remarks.begin(), proposal.remarks.begin(), proposal.remarks.end());
  if (request.explain) Explain(configuration.published().Get()->config, node, plan);
  return api::ToJson(plan);
}

}  // namespace penstock::app
