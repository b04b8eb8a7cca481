// Offers and labels of a configuration that is not in force.
#include "door/preview.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "node/share/assign.h"

namespace penstock::door {

namespace {

using Name = std::pair<std::string, std::string>;  // door, resource

bool IsOpen(api::Switch setting, bool automatic) { return setting == api::Switch::kOn || (setting == api::Switch::kAuto && automatic); }

std::map<Name, const node::share::Offer*> ByName(const std::vector<node::share::Offer>& offers) {
  std::map<Name, const node::share::Offer*> named;
  for (const auto& offer : offers) named[{offer.door, offer.resource}] = &offer;
  return named;
}

std::set<std::string> SlotsOf(const node::share::Offer* offer) {
  std::set<std::string> slots;
  if (offer == nullptr) return slots;
  for (const auto& offered : offer->slots) slots.insert(offered.slot.id);
  return slots;
}

std::string Describe(const node::ledger::Lease& lease) {
  if (!lease.pod.empty()) return "pod " + lease.namespace_name + "/" + lease.pod;
  return (lease.user.empty() ? lease.id : lease.user) + (lease.command.empty() ? "" : ": " + lease.command);
}

std::vector<std::string> HoldersOf(const std::set<std::string>& slots, const node::ledger::Snapshot& ledger) {
  std::vector<std::string> holders;
  for (const auto& lease : ledger.leases)
    if (std::any_of(lease.slots.begin(), lease.slots.end(), [&](const auto& slot) { return slots.contains(slot.id); }))
      holders.push_back(Describe(lease));
  return holders;
}

void AddResources(const Preview& before, const Preview& after, const node::ledger::Snapshot& ledger, api::Effect effect, api::Plan& plan) {
  const auto old_offers = ByName(before.offers), new_offers = ByName(after.offers);
  std::set<Name> names;
  for (const auto& [name, offer] : old_offers) names.insert(name);
  for (const auto& [name, offer] : new_offers) names.insert(name);
  for (const Name& name : names) {
    const auto was = old_offers.find(name), will = new_offers.find(name);
    const auto had = SlotsOf(was == old_offers.end() ? nullptr : was->second),
               has = SlotsOf(will == new_offers.end() ? nullptr : will->second);
    if (had == has) continue;
    std::set<std::string> lost;
    std::set_difference(had.begin(), had.end(), has.begin(), has.end(), std::inserter(lost, lost.end()));
    plan.resources.push_back({name.first, name.second, had.size(), has.size(), effect, HoldersOf(lost, ledger)});
  }
}

std::optional<std::string> ValueOf(const node::label::LabelSet& labels, const std::string& key) {
  const auto found = labels.find(key);
  return found == labels.end() ? std::nullopt : std::optional(found->second);
}

void AddLabels(const Preview& before, const Preview& after, api::Effect effect, api::Plan& plan) {
  std::set<std::string> keys;
  for (const auto& [key, value] : before.labels) keys.insert(key);
  for (const auto& [key, value] : after.labels) keys.insert(key);
  for (const std::string& key : keys) {
    auto was = ValueOf(before.labels, key), will = ValueOf(after.labels, key);
    if (was != will) plan.labels.push_back({key, std::move(was), std::move(will), effect});
  }
}

/// A rule that matches nothing is more often a slip than a plan for devices to come.
void AddRulesWithoutDevices(const api::NodeConfig& config, const node::inventory::Snapshot& inventory, std::vector<std::string>& remarks) {
  for (std::size_t i = 0; i < config.doors.size(); ++i) {
    const bool matches = std::any_of(inventory.devices.begin(), inventory.devices.end(),
                                     [&](const auto& entry) { return node::share::Selects(config.doors[i].devices, *entry.facts); });
    if (!matches) remarks.push_back("doors.assign[" + std::to_string(i) + "]: matches no device of this node");
  }
}

}  // namespace

Preview MakePreview(const api::NodeConfig& config, const PreviewNode& node) {
  const node::share::OpenDoors open{.kubelet = IsOpen(config.kubelet_door, node.kubelet_exists), .local = IsOpen(config.local_door, true)};
  auto wished = node::share::ComputeWishes(config, open, node.moves, node.inventory, node.dialect_of);
  AddRulesWithoutDevices(config, node.inventory, wished.remarks);
  const node::label::Context context{.machine = node.machine,
                                     .timestamp = node.timestamp,
                                     .config = config.labels,
                                     .host_features = IsOpen(config.labels.host_features, !node.nfd)};
  return {.offers = node::share::ComputeOffers(wished.wishes, node.inventory, node.ledger, node.servers),
          .labels =
              node::label::ComputeLabels(node.inventory, node.dialect_of, context, node::share::LabelSharesOf(wished.wishes, node.servers)),
          .remarks = std::move(wished.remarks)};
}

void AddDifference(const Preview& before, const Preview& after, const node::ledger::Snapshot& ledger, api::Effect effect, api::Plan& plan) {
  AddResources(before, after, ledger, effect, plan);
  AddLabels(before, after, effect, plan);
}

api::Plan MakePlan(const api::NodeConfig& now, const api::NodeConfig& at_once, const api::NodeConfig& after_restart,
                   const PreviewNode& node) {
  api::Plan plan{.changes = api::Changes(now, after_restart)};
  const Preview first = MakePreview(now, node), second = MakePreview(at_once, node), last = MakePreview(after_restart, node);
  AddDifference(first, second, node.ledger, api::Effect::kNow, plan);
  AddDifference(second, last, node.ledger, api::Effect::kRestart, plan);
  plan.remarks = last.remarks;
  return plan;
}

}  // namespace penstock::door
