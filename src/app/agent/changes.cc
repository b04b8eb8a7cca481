#include "app/agent/changes.h"

#include <utility>

#include "app/state_files.h"

namespace penstock::app {
namespace {

/// The name is that of 0.1.0, which reads the file as well.
std::string MovesPath(const std::string& state_dir) { return state_dir + "/doors.json"; }
std::string LayoutPath(const std::string& state_dir) { return state_dir + "/layout.json"; }
std::string PartsPath(const std::string& state_dir) { return state_dir + "/parts.json"; }

node::change::KubeletList::Ask AskOf(adapter::kubelet::KubeletAdapter* kubelet) {
  if (kubelet == nullptr) return nullptr;
  return [kubelet](auto done) { kubelet->QueryCounted(std::move(done)); };
}

std::function<void(bool)> AwaitReleasesOf(adapter::kubelet::KubeletAdapter* kubelet) {
  if (kubelet == nullptr) return nullptr;
  return [kubelet](bool has_waiters) { kubelet->AwaitReleases(has_waiters); };
}

}  // namespace

base::Result<Changes::Remembered> Changes::Remember(const std::string& state_dir,
                                                    const std::string& boot_id) {
  Remembered remembered;
  ASSIGN(remembered.moved, node::change::LoadManualAssignments(MovesPath(state_dir)));
  ASSIGN(remembered.under_way, node::change::LoadChanges(JournalPath(state_dir)));
  ASSIGN(remembered.layout, node::change::LoadAppliedLayout(LayoutPath(state_dir)));
  ASSIGN(remembered.on_demand, node::change::LoadOnDemandParts(PartsPath(state_dir), boot_id));
  return remembered;
}

Changes::Changes(os::Loop& control, base::Executor& io, DevicePipeline& pipeline,
                 adapter::kubelet::KubeletAdapter* kubelet,
                 const node::share::EnabledAllocators& enabled, const std::string& state_dir,
                 Remembered remembered, const std::string& boot_id)
    : enabled_(enabled),
      changes_(control, io, {pipeline.inventory, pipeline.ledger, pipeline.offers}, AskOf(kubelet),
               JournalPath(state_dir), std::move(remembered.under_way)),
      moves_(control, io, {pipeline.inventory, pipeline.ledger, pipeline.offers, changes_}, enabled,
             AwaitReleasesOf(kubelet), MovesPath(state_dir), std::move(remembered.moved)),
      divisions_(
          control, io, {pipeline.inventory, pipeline.ledger, changes_},
          [&pipeline](std::string_view vendor) { return pipeline.DivisionsOf(vendor); },
          LayoutPath(state_dir), std::move(remembered.layout), boot_id),
      on_demand_(
          control, io, {pipeline.inventory, pipeline.ledger, changes_},
          [&pipeline](std::string_view vendor) { return pipeline.DivisionsOf(vendor); },
          PartsPath(state_dir), std::move(remembered.on_demand), boot_id),
      resets_(control, pipeline.inventory, pipeline.ledger, pipeline.monitor, changes_,
              [&pipeline](std::string_view vendor) { return pipeline.ResetsOf(vendor); }) {}

void Changes::Configure(const api::NodeConfig& config) {
  moves_.Configure(config);
  const std::vector<std::string> on_demand = node::share::OnDemandDevices(config, enabled_);
  divisions_.SetOnDemand(on_demand);
  on_demand_.SetDevices(on_demand);
  resets_.SetPolicy(config.health.reset);
}

}  // namespace penstock::app
