// Computes a proposal of the configuration and previews it on the node.
#include "app/agent/preview.h"

#include <utility>

#include "node/allocate/explain.h"

namespace penstock::app {

namespace {

/// Explains requests against the configuration in force, not the proposed one.
void Explain(const api::NodeConfig& config, const view::PreviewNode& node,
             api::ConfigPreview& preview) {
  const view::Preview now = view::MakePreview(config, node);
  auto explained = node::allocate::Explain(now.offers, now.assignments, config.sharing.policy,
                                           node.inventory, node.ledger);
  preview.devices = std::move(explained.devices);
  for (api::PreviewedDevice& device : preview.devices)
    if (const auto* entry = node.inventory.Find(device.id); entry != nullptr)
      device.number = entry->facts->number;
  preview.choices = std::move(explained.choices);
}

base::Result<std::string> PreviewOf(const Proposal& proposal, const api::NodeConfig& now,
                                    bool explain, const view::PreviewNode& node) {
  api::ConfigPreview preview =
      view::PreviewConfig(now, proposal.config, proposal.after_restart, node);
  preview.origin = proposal.origin;
  preview.changes = proposal.changes;
  preview.not_yet = proposal.not_yet;
  preview.remarks.insert(preview.remarks.begin(), proposal.remarks.begin(), proposal.remarks.end());
  if (explain) Explain(now, node, preview);
  return api::ToJson(preview);
}

}  // namespace

void PreviewOn(base::Executor& io, base::Executor& control,
               const protocol::broker::PreviewRequest& request, const Configuration& configuration,
               KeptPreviewNode node, std::function<void(base::Result<std::string>)> done) {
  io.Post([&control, node = std::move(node), done = std::move(done), explain = request.explain,
           propose = configuration.Proposing(request.text, request.name),
           now = configuration.published().Get()] {
    const auto proposal = propose();
    control.Post(
        [done, preview = proposal.ok()
                             ? PreviewOf(*proposal, now->config, explain, node.node)
                             : base::Result<std::string>(proposal.error())] { done(preview); });
  });
}

}  // namespace penstock::app
