// Offers from snapshots.
#include "node/share/offer.h"

#include <algorithm>
#include <set>

#include "node/share/wish.h"

namespace penstock::node::share {
namespace {

using ledger::Lease;
using ledger::Slot;

std::string Describe(const Lease& lease) { return lease.pod.empty() ? lease.id : lease.namespace_name + "/" + lease.pod; }

/// Who holds what of one device.
class Held {
 public:
  void Add(const Lease& lease, const Slot& slot) {
    if (slot.id == slot.device) whole_ = &lease;
    slots_.emplace(slot.id, std::pair(&lease, &slot));
  }
  const Lease* whole() const { return whole_; }
  bool empty() const { return slots_.empty(); }
  const std::map<std::string, std::pair<const Lease*, const Slot*>>& slots() const { return slots_; }

 private:
  const Lease* whole_ = nullptr;
  std::map<std::string, std::pair<const Lease*, const Slot*>> slots_;
};

std::map<std::string, Held> HeldByDevice(const ledger::Snapshot& ledger) {
  std::map<std::string, Held> held;
  for (const Lease& lease : ledger.leases)
    for (const Slot& slot : lease.slots) held[slot.device].Add(lease, slot);
  return held;
}

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

std::string ReasonOfServer(const std::string& device, const device::SharedDevices& servers) {
  const auto server = servers.find(device);
  if (server == servers.end()) return "its server is not there yet";
  return server->second.ready ? "" : server->second.reason;
}

/// Cut for a caller of the local door out of a device that the configuration wants whole: so it stays while anybody holds a share.
device::Shape ShapeInForce(const Wish& wish, const Held& held) {
  if (wish.door != kLocalDoor || wish.shape.shares != 1) return wish.shape;
  for (const auto& [id, holder] : held.slots())
    if (holder.first->door == kLocalDoor && id != holder.second->device) return holder.second->shape;
  return wish.shape;
}

/// Marks what those who hold this device in another shape, at another door or under another name keep from being used.
class FormerHolders {
 public:
  FormerHolders(const Held& held, const Wish& wish, const device::Shape& shape, const std::set<std::string>& listed) {
    for (const auto& [id, holder] : held.slots()) {
      const auto& [lease, slot] = holder;
      const bool ours = lease->door == wish.door && (slot->resource.empty() || slot->resource == wish.resource);
      if (ours && listed.contains(id) && (shape.shares == 1 || slot->shape.sharing == shape.sharing)) continue;
      if (first_.empty()) first_ = Describe(*lease);
      if (id == slot->device || shape.shares == 1 || slot->shape.sharing != shape.sharing) {
        all_ = true;
      } else if (listed.contains(id)) {
        exactly_.insert(id);
      } else {
        ++places_;
      }
    }
  }

  /// Slots from the last to the first.
  void Mark(std::vector<OfferedSlot>::reverse_iterator slot, std::vector<OfferedSlot>::reverse_iterator end, const Held& held) {
    for (; slot != end && slot->usable; ++slot) {
      const bool taken = held.slots().contains(slot->slot.id);
      const bool place = !taken && places_ > 0;
      if (!exactly_.contains(slot->slot.id) && !place && (!all_ || taken)) continue;
      if (place && !all_) --places_;
      slot->usable = false;
      slot->reason = "still held by " + first_ + " as it was offered before";
    }
  }

 private:
  bool all_ = false;
  int places_ = 0;
  std::set<std::string> exactly_;
  std::string first_;
};

void AddSlots(const inventory::Entry& entry, const Wish& wish, const Held& held, const std::string& reason,
              const device::SharedDevices& servers, Offer& offer) {
  const std::string& id = entry.facts->id;
  const device::Shape shape = ShapeInForce(wish, held);
  const std::string why = reason.empty() && shape.sharing == device::Sharing::kMps ? ReasonOfServer(id, servers) : reason;
  const device::Isolation isolation = IsolationOf(id, shape, servers);
  std::set<std::string> listed;
  for (int share = 0; share < shape.shares; ++share) {
    const Slot slot{SlotId(id, shape, share), id, wish.resource, shape};
    if (!held.empty()) listed.insert(slot.id);
    offer.slots.push_back({slot, why.empty(), why, entry.facts->numa_node, isolation});
  }
  offer.single = offer.single || wish.single;
  if (held.empty()) return;
  const auto first = offer.slots.rbegin();
  FormerHolders(held, wish, shape, listed).Mark(first, first + shape.shares, held);
}

}  // namespace

device::Isolation IsolationOf(const std::string& device, const device::Shape& shape, const device::SharedDevices& servers) {
  if (shape.sharing == device::Sharing::kNone) return device::Isolation::kHardware;
  const auto server = servers.find(device);
  return shape.sharing == device::Sharing::kMps && server != servers.end() ? server->second.isolation : device::Isolation::kNone;
}

std::vector<Offer> ComputeOffers(const Wishes& wishes, const inventory::Snapshot& inventory, const ledger::Snapshot& ledger,
                                 const device::SharedDevices& servers) {
  static const Held kNobody;
  std::vector<Offer> offers;
  const auto held = HeldByDevice(ledger);
  for (const inventory::Entry& entry : inventory.devices) {
    const auto wish = wishes.find(entry.facts->id);
    if (wish == wishes.end() || wish->second.door.empty() || !entry.facts->withheld.empty() || NotLookedAt(entry)) continue;
    auto offer = std::find_if(offers.begin(), offers.end(),
                              [&](const Offer& one) { return one.resource == wish->second.resource && one.door == wish->second.door; });
    if (offer == offers.end()) offer = offers.insert(offers.end(), Offer{wish->second.resource, wish->second.door, {}});
    const auto holders = held.find(entry.facts->id);
    AddSlots(entry, wish->second, holders == held.end() ? kNobody : holders->second, ReasonNotUsable(entry, ledger), servers, *offer);
  }
  return offers;
}

}  // namespace penstock::node::share
