// Computes a proposal of the configuration and previews it on the node.
#include "app/agent/plan.h"

#include <utility>

#include "node/allocate/explain.h"

namespace penstock::app {

namespace {

/// Explains requests against the configuration in force, not the planned one.
void Explain(const api::NodeConfig& config, const view::PreviewNode& node, api::Plan& plan) {
  const view::Preview now = view::MakePreview(config, node);
  auto explained = node::allocate::Explain(now.offers, now.assignments, config.sharing.policy,
                                           node.inventory, node.ledger);
  plan.devices = std::move(explained.devices);
  for (api::PlannedDevice& device : plan.devices)
    if (const auto* entry = node.inventory.Find(device.id); entry != nullptr)
      device.number = entry->facts->number;
  plan.choices = std::move(explained.choices);
}

base::Result<std::string> PlanFor(const Proposal& proposal, const api::NodeConfig& now,
                                  bool explain, const view::PreviewNode& node) {
  api::Plan plan = view::MakePlan(now, proposal.config, proposal.after_restart, node);
  plan.origin = proposal.origin;
  plan.changes = proposal.changes;
  plan.not_yet = proposal.not_yet;
  plan.remarks.insert(plan.remarks.begin(), proposal.remarks.begin(), proposal.remarks.end());
  if (explain) Explain(now, node, plan);
  return api::ToJson(plan);
}

}  // namespace

void PlanOn(base::Executor& io, base::Executor& control,
            const protocol::broker::PlanRequest& request, const Configuration& configuration,
            KeptPreviewNode node, std::function<void(base::Result<std::string>)> done) {
  io.Post([&control, node = std::move(node), done = std::move(done), explain = request.explain,
           propose = configuration.Proposing(request.text, request.name),
           now = configuration.published().Get()] {
    const auto proposal = propose();
    control.Post([done, plan = proposal.ok()
                                   ? PlanFor(*proposal, now->config, explain, node.node)
                                   : base::Result<std::string>(proposal.error())] { done(plan); });
  });
}

}  // namespace penstock::app
