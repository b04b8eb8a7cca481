// Offers from snapshots.
#include "node/share/offer.h"

#include <algorithm>

namespace penstock::node::share {
namespace {

std::string ReasonNotUsable(const inventory::Entry& entry, const ledger::Snapshot& ledger) {
  if (entry.health.state != device::HealthState::kHealthy)
    return entry.health.reason.empty() ? std::string(device::ToString(entry.health.state)) : entry.health.reason;
  const auto outside = ledger.outside.find(entry.facts->id);
  if (outside == ledger.outside.end()) return "";
  const ledger::Process& process = outside->second.front();
  return "in use by process " + std::to_string(process.pid) + " (" + process.command + ") of " + process.user +
         ", which nobody handed it to";
}

/// Not read since it first appeared. Nothing speaks against it, so it must not be shown as unusable; one that is back after it was gone was
/// offered before and stays.
bool NotLookedAt(const inventory::Entry& entry) {
  return entry.health.state == device::HealthState::kUnknown && entry.read_at == base::WallTime{};
}

}  // namespace

std::vector<Offer> ComputeOffers(const inventory::Snapshot& inventory, const ledger::Snapshot& ledger, const DoorOf& door_of,
                                 const DialectOf& dialect_of) {
  std::vector<Offer> offers;
  for (const inventory::Entry& entry : inventory.devices) {
    const device::Dialect* dialect = dialect_of(entry.facts->vendor);
    const std::string door = door_of(*entry.facts);
    if (dialect == nullptr || door.empty() || !entry.facts->withheld.empty() || NotLookedAt(entry)) continue;
    auto offer = std::find_if(offers.begin(), offers.end(),
                              [&](const Offer& one) { return one.resource == dialect->resource() && one.door == door; });
    if (offer == offers.end()) offer = offers.insert(offers.end(), Offer{std::string(dialect->resource()), door, {}});
    const std::string reason = ReasonNotUsable(entry, ledger);
    offer->slots.push_back({{entry.facts->id, entry.facts->id}, reason.empty(), reason, entry.facts->numa_node});
  }
  return offers;
}

}  // namespace penstock::node::share
