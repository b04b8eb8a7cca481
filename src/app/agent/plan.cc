// A proposal of the configuration, shown on the node.
#include "app/agent/plan.h"

#include <utility>

namespace penstock::app {

base::Result<std::string> PlanFor(const edge::broker::PlanRequest& request, const Configuration& configuration,
                                  const door::PreviewNode& node) {
  ASSIGN(Proposal proposal, request.text ? configuration.Propose(*request.text, request.name) : configuration.ProposeCurrent());
  api::Plan plan = door::MakePlan(configuration.published().Get()->config, proposal.config, proposal.after_restart, node);
  plan.origin = std::move(proposal.origin);
  plan.changes = std::move(proposal.changes);
  plan.not_yet = std::move(proposal.not_yet);
  plan.remarks.insert(plan.remarks.begin(), proposal.remarks.begin(), proposal.remarks.end());
  return api::ToJson(plan);
}

}  // namespace penstock::app
