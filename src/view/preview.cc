#include "view/preview.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/core/strings.h"
#include "node/share/allocator.h"
#include "node/share/describe.h"

namespace penstock::view {

namespace {

using OfferName = std::pair<std::string, std::string>;  // allocator, resource

std::map<OfferName, const node::share::Offer*> ByName(
    const std::vector<node::share::Offer>& offers) {
  std::map<OfferName, const node::share::Offer*> named;
  for (const auto& offer : offers) named[{offer.allocator, offer.resource}] = &offer;
  return named;
}

std::map<std::string, device::Shape> SlotsOf(
    const std::map<OfferName, const node::share::Offer*>& offers, const OfferName& name) {
  std::map<std::string, device::Shape> slots;
  const auto offer = offers.find(name);
  if (offer == offers.end()) return slots;
  for (const auto& offered : offer->second->slots)
    slots.emplace(offered.slot.id, offered.slot.shape);
  return slots;
}

std::vector<std::string> HoldersOf(const std::set<std::string>& slots,
                                   const node::ledger::Snapshot& ledger) {
  std::vector<std::string> holders;
  for (const auto& lease : ledger.leases)
    if (std::ranges::any_of(lease.slots, [&](const auto& slot) { return slots.contains(slot.id); }))
      holders.push_back(node::share::Describe(lease));
  return holders;
}

void AddResources(const Preview& before, const Preview& after, const node::ledger::Snapshot& ledger,
                  api::Effect effect, api::ConfigPreview& preview) {
  const auto old_offers = ByName(before.offers), new_offers = ByName(after.offers);
  std::set<OfferName> names;
  for (const auto& [name, offer] : old_offers) names.insert(name);
  for (const auto& [name, offer] : new_offers) names.insert(name);
  for (const OfferName& name : names) {
    const auto had = SlotsOf(old_offers, name), has = SlotsOf(new_offers, name);
    if (had == has) continue;
    std::set<std::string> lost;
    for (const auto& [id, shape] : had)
      if (const auto still = has.find(id);
          still == has.end() || still->second.sharing != shape.sharing)
        lost.insert(id);
    preview.resources.push_back(
        {name.first, name.second, had.size(), has.size(), effect, HoldersOf(lost, ledger)});
  }
}

/// A device that is held is not taken from its holder.
void AddWaits(const Preview& before, const Preview& after, const PreviewNode& node,
              std::vector<std::string>& remarks) {
  for (const auto& entry : node.inventory.devices) {
    const auto was = before.assignments.find(entry.facts->id),
               will = after.assignments.find(entry.facts->id);
    if (was == before.assignments.end() || will == after.assignments.end() ||
        was->second.allocator.empty())
      continue;
    const std::string holders = node::share::HoldersOf(node.ledger, entry.facts->id).text;
    if (holders.empty()) continue;
    const std::string held = node::share::Describe(*entry.facts) + " is held by " + holders;
    if (was->second.allocator != will->second.allocator) {
      remarks.push_back(held + (will->second.allocator.empty()
                                    ? "; once released, it is assigned to no allocator"
                                    : "; once released, it is assigned to " +
                                          node::share::DescribeAllocator(will->second.allocator)));
    } else if (was->second.shape != will->second.shape ||
               was->second.resource != will->second.resource) {
      remarks.push_back(held +
                        " as it is offered now; that part stays held and cannot be allocated again "
                        "until it is released");
    }
  }
}

std::optional<std::string> ValueOf(const node::label::LabelSet& labels, const std::string& key) {
  const auto found = labels.find(key);
  return found == labels.end() ? std::nullopt : std::optional(found->second);
}

void AddLabels(const Preview& before, const Preview& after, api::Effect effect,
               api::ConfigPreview& preview) {
  std::set<std::string> keys;
  for (const auto& [key, value] : before.labels) keys.insert(key);
  for (const auto& [key, value] : after.labels) keys.insert(key);
  for (const std::string& key : keys) {
    auto was = ValueOf(before.labels, key), will = ValueOf(after.labels, key);
    if (was != will) preview.labels.push_back({key, std::move(was), std::move(will), effect});
  }
}

/// A rule that matches no device is more often a mistake than a plan for future devices.
void AddUnmatchedRules(const api::NodeConfig& config, const node::inventory::Snapshot& inventory,
                       std::vector<std::string>& remarks) {
  for (std::size_t i = 0; i < config.assignments.size(); ++i) {
    const bool matches = std::ranges::any_of(inventory.devices, [&](const auto& entry) {
      return node::share::Selects(config.assignments[i].devices, entry);
    });
    if (!matches)
      remarks.push_back(base::Item("allocators.assign", i) + ": matches no device of this node");
  }
}

}  // namespace

Preview MakePreview(const api::NodeConfig& config, const PreviewNode& node) {
  const auto enabled = node::share::EnabledBy(config, node.kubelet_exists);
  auto desired =
      node::share::ComputeAssignments(config, enabled, node.moves, node.inventory, node.dialect_of);
  AddUnmatchedRules(config, node.inventory, desired.remarks);
  const node::label::LabelContext context{
      .machine = node.machine,
      .timestamp = node.timestamp,
      .config = config.labels,
      .host_features = api::IsOn(config.labels.host_features, !node.nfd)};
  Preview preview{.offers = node::share::ComputeOffers(desired.assignments, node.inventory,
                                                       node.ledger, node.servers),
                  .labels = node::label::ComputeLabels(
                      node.inventory, node.dialect_of, context,
                      node::share::LabelSharesOf(desired.assignments, node.servers)),
                  .remarks = std::move(desired.remarks)};
  preview.assignments = std::move(desired.assignments);
  return preview;
}

void AddDifference(const Preview& before, const Preview& after,
                   const node::ledger::Snapshot& ledger, api::Effect effect,
                   api::ConfigPreview& preview) {
  AddResources(before, after, ledger, effect, preview);
  AddLabels(before, after, effect, preview);
}

api::ConfigPreview PreviewConfig(const api::NodeConfig& now, const api::NodeConfig& at_once,
                                 const api::NodeConfig& after_restart, const PreviewNode& node) {
  api::ConfigPreview preview{.changes = api::Changes(now, after_restart)};
  const Preview first = MakePreview(now, node), second = MakePreview(at_once, node),
                last = MakePreview(after_restart, node);
  AddDifference(first, second, node.ledger, api::Effect::kNow, preview);
  AddDifference(second, last, node.ledger, api::Effect::kRestart, preview);
  preview.remarks = last.remarks;
  AddWaits(first, second, node, preview.remarks);
  return preview;
}

}  // namespace penstock::view
