#include "node/inventory/inventory.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace penstock::node::inventory {
namespace {

template <typename Entries>
auto* FindIn(Entries& entries, std::string_view id) {
  const auto found =
      std::ranges::find_if(entries, [id](const auto& entry) { return entry.facts->id == id; });
  return found == entries.end() ? nullptr : &*found;
}

void SetHealthOf(Entry& entry, device::HealthState state, const std::string& reason,
                 base::WallTime now) {
  if (entry.health.state == state && entry.health.reason == reason) return;
  // A new reason for the same state keeps the time since when the state has lasted.
  const base::WallTime since = entry.health.state == state && entry.health.since != base::WallTime{}
                                   ? entry.health.since
                                   : now;
  entry.health = {state, reason, since};
}

auto OrderOf(const device::Facts& facts) {
  return std::tuple<const std::string&, bool, int, const std::string&>(
      facts.vendor, facts.index < 0, facts.index, facts.id);
}

/// Parts follow their device.
void Sort(std::vector<Entry>& devices) {
  std::map<std::string, std::shared_ptr<const device::Facts>> by_id;
  for (const Entry& entry : devices) by_id.emplace(entry.facts->id, entry.facts);
  const auto whole_of = [&](const Entry& entry) {
    const auto whole =
        entry.ancestors.empty() ? by_id.end() : by_id.find(entry.ancestors.back().device);
    return whole == by_id.end() ? entry.facts : whole->second;
  };
  std::ranges::stable_sort(devices, [&](const Entry& a, const Entry& b) {
    const auto of_a = whole_of(a), of_b = whole_of(b);
    const auto order = [](const device::Facts& whole, const Entry& entry) {
      const device::Facts& facts = *entry.facts;
      return std::tuple(OrderOf(whole), !entry.ancestors.empty(), facts.number.size(),
                        std::string_view(facts.number), OrderOf(facts));
    };
    return order(*of_a, a) < order(*of_b, b);
  });
}

}  // namespace

bool Entry::IsPartOf(std::string_view device) const {
  return std::ranges::find(ancestors, device, &Ancestor::device) != ancestors.end();
}

const Entry* Snapshot::Find(std::string_view id) const { return FindIn(devices, id); }

const VendorEntry* Snapshot::FindVendor(std::string_view vendor) const {
  const auto found = std::ranges::find(vendors, vendor, &VendorEntry::vendor);
  return found == vendors.end() ? nullptr : &*found;
}

void Inventory::SetVendor(VendorEntry vendor) {
  Snapshot next = Copy();
  const auto found = std::ranges::find(next.vendors, vendor.vendor, &VendorEntry::vendor);
  if (found == next.vendors.end()) {
    next.vendors.push_back(std::move(vendor));
  } else {
    const auto same = [](const auto& a, const auto& b) { return a == b || (a && b && *a == *b); };
    if (same(found->driver, vendor.driver) && same(found->place, vendor.place) &&
        found->reason == vendor.reason && found->since == vendor.since)
      return;
    *found = std::move(vendor);
  }
  ++next.facts_generation;
  published_.Set(std::move(next));
}

void Inventory::SetFacts(const std::string& vendor, std::vector<device::Facts> facts,
                         const WhyGone& why_gone, base::WallTime now) {
  Snapshot next = Copy();
  bool facts_changed = false, state_changed = false;
  std::set<std::string> there;
  for (device::Facts& now_there : facts) {
    there.insert(now_there.id);
    Entry* known = FindIn(next.devices, now_there.id);
    if (known == nullptr) {
      next.devices.push_back({std::make_shared<const device::Facts>(std::move(now_there)),
                              {device::HealthState::kUnknown, "not read yet", now},
                              nullptr,
                              {},
                              ""});
      facts_changed = true;
      continue;
    }
    if (known->health.state == device::HealthState::kGone) {
      SetHealthOf(*known, device::HealthState::kUnknown, "back, not read yet", now);
      state_changed = true;
    }
    if (!(*known->facts == now_there)) {
      known->facts = std::make_shared<const device::Facts>(std::move(now_there));
      facts_changed = true;
    }
  }
  for (Entry& entry : next.devices) {
    if (entry.facts->vendor != vendor || there.contains(entry.facts->id)) continue;
    std::string reason = why_gone(*entry.facts);
    if (entry.health.state == device::HealthState::kGone && entry.health.reason == reason) continue;
    SetHealthOf(entry, device::HealthState::kGone, std::move(reason), now);
    entry.reading = nullptr;
    state_changed = true;
    if (NumberOf(*entry.facts).empty()) continue;
    device::Facts without_index = *entry.facts;  // which another device has now
    without_index.index = -1;
    without_index.number.clear();
    entry.facts = std::make_shared<const device::Facts>(std::move(without_index));
    facts_changed = true;
  }
  TakePlaces(vendor, next, facts_changed);
  PlaceParts(vendor, next, facts_changed);
  NumberByAddress(vendor, next, facts_changed);
  if (!facts_changed && !state_changed) return;
  Sort(next.devices);
  next.facts_generation += facts_changed ? 1 : 0;
  next.state_generation += state_changed ? 1 : 0;
  published_.Set(std::move(next));
}

/// Records present devices at their PCI addresses; forgets a missing device whose address is taken.
void Inventory::TakePlaces(const std::string& vendor, Snapshot& next, bool& facts_changed) {
  std::set<device::PciAddress> taken;
  for (Entry& entry : next.devices) {
    if (entry.facts->vendor != vendor || entry.health.state == device::HealthState::kGone) continue;
    if (auto replaced = DetectReplacement(occupancy_, *entry.facts)) {
      entry.replaced = std::move(replaced->words);
      entry.replaced_id = std::move(replaced->id);
      facts_changed = true;
    }
    if (entry.facts->pci && entry.facts->parent.empty()) taken.insert(*entry.facts->pci);
  }
  std::set<std::string> there;
  for (const Entry& entry : next.devices)
    if (entry.health.state != device::HealthState::kGone) there.insert(entry.facts->id);
  // A part that is gone from a device that is there was removed by a division of another kind.
  const std::size_t forgotten = std::erase_if(next.devices, [&](const Entry& entry) {
    return entry.health.state == device::HealthState::kGone && entry.facts->vendor == vendor &&
           ((entry.facts->pci && taken.contains(*entry.facts->pci)) ||
            there.contains(entry.facts->parent));
  });
  facts_changed = facts_changed || forgotten > 0;
}

void Inventory::PlaceParts(const std::string& vendor, Snapshot& next, bool& facts_changed) {
  std::vector<const device::Facts*> present;
  for (const Entry& entry : next.devices)
    if (entry.facts->vendor == vendor && entry.health.state != device::HealthState::kGone)
      present.push_back(entry.facts.get());
  auto places = PlaceInTree(present);
  for (Entry& entry : next.devices) {
    if (entry.facts->vendor != vendor) continue;
    const TreePlace gone{.ancestors = entry.ancestors, .withheld = entry.facts->withheld};
    const auto place = places.try_emplace(entry.facts->id, gone).first;
    if (place->second == TreePlace{entry.ancestors, entry.withheld}) continue;
    entry.withheld = std::move(place->second.withheld);
    entry.ancestors = std::move(place->second.ancestors);
    facts_changed = true;
  }
}

void Inventory::NumberByAddress(const std::string& vendor, Snapshot& next, bool& facts_changed) {
  std::map<device::PciAddress, int>& numbers = numbers_[vendor];
  const auto is_away = [&vendor](const Entry& entry) {
    return entry.facts->vendor == vendor && entry.health.state == device::HealthState::kGone;
  };
  if (std::ranges::none_of(next.devices, is_away)) numbers.clear();
  std::set<int> taken;
  for (const auto& [place, number] : numbers) taken.insert(number);
  for (Entry& entry : next.devices) {
    if (entry.facts->vendor != vendor || !entry.ancestors.empty()) continue;
    int number = entry.facts->index;
    if (entry.facts->pci && entry.facts->parent.empty()) {
      const auto known = numbers.find(*entry.facts->pci);
      if (known == numbers.end() && !taken.insert(number).second)
        number = -1;  // it belongs to the address of a missing device
      number = known == numbers.end() ? numbers.emplace(*entry.facts->pci, number).first->second
                                      : known->second;
    }
    facts_changed = facts_changed || entry.number != number;
    entry.number = number;
  }
  for (Entry& entry : next.devices) {
    if (entry.facts->vendor != vendor || entry.ancestors.empty()) continue;
    const Entry* whole = FindIn(next.devices, entry.ancestors.back().device);
    const int number = whole == nullptr ? -1 : whole->number;
    facts_changed = facts_changed || entry.number != number;
    entry.number = number;
  }
}

void Inventory::SetReading(const std::string& id, device::Reading reading, base::WallTime now) {
  const auto before = published_.Get();
  const Entry* known = before->Find(id);
  if (known == nullptr) return;
  read_at_[id] = now;
  if (known->reading != nullptr && *known->reading == reading) return;
  Snapshot next = Copy();
  FindIn(next.devices, id)->reading = std::make_shared<const device::Reading>(std::move(reading));
  Publish(std::move(next));
}

void Inventory::PublishReadTimes() {
  if (read_at_.empty()) return;
  Snapshot next = Copy();
  TakeReadTimes(next);
  published_.Set(std::move(next));
}

void Inventory::TakeReadTimes(Snapshot& next) {
  if (read_at_.empty()) return;
  for (Entry& entry : next.devices)
    if (const auto read = read_at_.find(entry.facts->id); read != read_at_.end())
      entry.read_at = read->second;
  read_at_.clear();
}

/// With a new state, and the times of all readings.
void Inventory::Publish(Snapshot next) {
  TakeReadTimes(next);
  ++next.state_generation;
  published_.Set(std::move(next));
}

void Inventory::SetHealth(const std::string& id, device::HealthState state,
                          const std::string& reason, base::WallTime now) {
  Snapshot next = Copy();
  Entry* entry = FindIn(next.devices, id);
  if (entry == nullptr) return;
  const device::Health before = entry->health;
  SetHealthOf(*entry, state, reason, now);
  if (entry->health == before) return;
  Publish(std::move(next));
}

}  // namespace penstock::node::inventory
