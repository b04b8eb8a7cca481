#include "node/change/part_sites.h"

#include <algorithm>

#include "node/change/parts_on_demand.h"
#include "node/share/allocator.h"

namespace penstock::node::change {

using inventory::Entry;

bool PartSites::Set(const std::vector<std::string>& set_aside) {
  if (set_aside_ == set_aside) return false;
  set_aside_ = set_aside;
  return true;
}

bool PartSites::IsSetAside(const Entry& entry) const {
  return entry.facts->parent.empty() && entry.health.state != device::HealthState::kGone &&
         share::IsForPartsOnDemand(set_aside_, entry);
}

const device::PartProfile* PartSites::ProfileOn(const Entry& entry, const std::string& name) const {
  const device::Dialect* dialect = vendor_of_(entry.facts->vendor).dialect;
  if (dialect == nullptr || dialect->part_terms() == nullptr) return nullptr;
  const auto profile = dialect->FindProfile(name, entry.facts->profiles);
  const bool usable = profile.ok() && (*profile)->within.empty() && !(*profile)->placements.empty();
  return usable ? *profile : nullptr;
}

std::vector<const Entry*> PartSites::For(const std::string& profile, const std::string& model,
                                         const inventory::Snapshot& snapshot) const {
  std::vector<const Entry*> sites;
  for (const Entry& entry : snapshot.devices)
    if (IsSetAside(entry) && ProfileOn(entry, profile) != nullptr &&
        (model.empty() || device::ModelMatches(model, entry.facts->model)))
      sites.push_back(&entry);
  return sites;
}

std::string PartSites::WhyClosed(const Entry& entry) const {
  const device::Facts& device = *entry.facts;
  // It is withdrawn meanwhile.
  if (node_.changes.OfKind(PartsOnDemand::kName, device.id) != nullptr) return "";
  if (const api::Allocator& cutting = api::CuttingAllocator();
      node_.changes.AllocatorOf(device.id) != cutting.name)
    return "it is not assigned to " + std::string(cutting.in_words);
  const device::PartTerms& terms = *vendor_of_(device.vendor).dialect->part_terms();
  const auto mode = std::ranges::find(device.modes, terms.mode, &device::Mode::name);
  return mode == device.modes.end() || mode->current != terms.on
             ? "its mode " + terms.mode + " is not " + terms.on
             : "";
}

}  // namespace penstock::node::change
