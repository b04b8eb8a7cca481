// Computes the offers device by device.
#include "node/share/offer.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "node/ledger/capacity.h"
#include "node/share/assignment.h"

namespace penstock::node::share {
namespace {

using device::Sharing;
using ledger::IsWhole;
using ledger::Lease;
using ledger::Slot;

std::string HolderName(const Lease& lease) {
  return lease.pod.empty() ? lease.id : lease.namespace_name + "/" + lease.pod;
}

/// A slot that a lease holds.
struct Holding {
  std::string holder, allocator;
  Slot slot;
  bool operator==(const Holding&) const = default;
};

/// All inputs of one device's slots.
struct Basis {
  std::string device;
  std::vector<inventory::Ancestor> ancestors;
  device::Capacity capacity;  // of a part
  std::optional<int> numa_node;
  Assignment assignment;
  device::Shape shape;        // in force
  std::string reason;         // why the device is not usable
  std::string tree_reason;    // who holds another device of the tree that excludes it
  std::string server_reason;  // why its server is not usable
  device::Isolation isolation = device::Isolation::kHardware;
  device::Limits limits;
  std::vector<Holding> held;
  bool operator==(const Basis&) const = default;
};

using HeldSlots = std::vector<std::pair<const Lease*, const Slot*>>;

struct Held {
  std::unordered_map<std::string_view, HeldSlots> of_device, of_parts;  // by device

  explicit Held(const ledger::Snapshot& ledger) {
    for (const Lease& lease : ledger.leases)
      for (const Slot& slot : lease.slots) {
        of_device[slot.device].emplace_back(&lease, &slot);
        for (const inventory::Ancestor& whole : slot.ancestors)
          of_parts[whole.device].emplace_back(&lease, &slot);
      }
  }
};

/// Why no slot of a device can be allocated because of other devices of the tree: who holds the
/// device that it is a part of, or a part of it, or other parts that leave no room for it.
std::string ReasonOfTree(const Slot& whole, const Held& held) {
  ledger::RoomFor room(whole);
  const auto reason = [&](const HeldSlots& slots) -> std::string {
    for (const auto& [lease, slot] : slots) {
      if (slot->device == whole.device || room.Beside(*slot)) continue;
      const std::string by = " is held by " + HolderName(*lease);
      if (ledger::IsPartOf(*slot, whole.device)) return "its part " + slot->device + by;
      return ledger::IsPartOf(whole, slot->device)
                 ? slot->device + ", of which it is a part," + by
                 : "beside " + slot->device + ", which" + by + ", there is no room for it";
    }
    return "";
  };
  if (const auto parts = held.of_parts.find(whole.device); parts != held.of_parts.end())
    if (std::string why = reason(parts->second); !why.empty()) return why;
  for (const inventory::Ancestor& ancestor : whole.ancestors)
    for (const auto* slots : {&held.of_device, &held.of_parts})
      if (const auto found = slots->find(ancestor.device); found != slots->end())
        if (std::string why = reason(found->second); !why.empty()) return why;
  return "";
}

std::string ReasonOfDevice(const inventory::Entry& entry, const ledger::Snapshot& ledger) {
  if (entry.health.state != device::HealthState::kHealthy)
    return entry.health.reason.empty() ? std::string(device::ToString(entry.health.state))
                                       : entry.health.reason;
  const auto outside = ledger.outside.find(entry.facts->id);
  if (outside == ledger.outside.end()) return "";
  // This text reaches the kubelet, and from there other users' events: it names the owner of the
  // process, but not the program.
  return "in use by a process of " + outside->second.front().user +
         " to which it is not allocated; see `penstock ps`";
}

/// What is wrong with a device is wrong with its parts.
std::string ReasonNotUsable(const inventory::Entry& entry, const ledger::Snapshot& ledger,
                            const inventory::Snapshot& inventory) {
  std::string reason = ReasonOfDevice(entry, ledger);
  for (const inventory::Ancestor& ancestor : entry.ancestors) {
    if (!reason.empty()) break;
    const inventory::Entry* whole = inventory.Find(ancestor.device);
    if (whole == nullptr || NeverRead(*whole)) continue;
    reason = ReasonOfDevice(*whole, ledger);
    if (!reason.empty()) reason = ancestor.device + ", of which it is a part: " + reason;
  }
  return reason;
}

/// For a shape without a server, a server that still exists is a former one. No other process can
/// use the device until that server has ended.
std::string ReasonOfServer(const std::string& device, Sharing sharing,
                           const device::SharedDevices& servers) {
  const auto server = servers.find(device);
  if (sharing != Sharing::kServer)
    return server == servers.end() ? "" : "its previous sharing server has not exited yet";
  if (server == servers.end()) return "its sharing server has not started yet";
  return server->second.ready ? "" : server->second.reason;
}

/// A share cut for a request, from a device that the configuration assigns
/// whole, determines the shape while any share is held.
device::Shape ShapeInForce(const Assignment& assignment, const std::vector<Holding>& held) {
  if (!api::FindAllocator(assignment.allocator).cuts_devices || assignment.shape.shares != 1)
    return assignment.shape;
  for (const Holding& one : held)
    if (api::FindAllocator(one.allocator).cuts_devices && !IsWhole(one.slot) &&
        one.slot.shape.sharing == Sharing::kTimeSlicing)
      return one.slot.shape;
  return assignment.shape;
}

Basis BasisOf(const inventory::Entry& entry, const Assignment& assignment, const Held& held,
              const inventory::Snapshot& inventory, const ledger::Snapshot& ledger,
              const device::SharedDevices& servers) {
  Basis basis{.device = entry.facts->id,
              .ancestors = entry.ancestors,
              .capacity = PartCapacityOf(entry),
              .numa_node = entry.facts->numa_node,
              .assignment = assignment,
              .reason = ReasonNotUsable(entry, ledger, inventory)};
  if (basis.reason.empty()) basis.reason = assignment.withdrawn;
  if (!entry.ancestors.empty() || !held.of_parts.empty())
    basis.tree_reason = ReasonOfTree(SlotOf(entry, assignment.resource, {}, 0), held);
  if (const auto holders = held.of_device.find(basis.device); holders != held.of_device.end())
    for (const auto& [lease, slot] : holders->second)
      basis.held.push_back({HolderName(*lease), lease->allocator, *slot});
  basis.shape = ShapeInForce(assignment, basis.held);
  basis.server_reason = ReasonOfServer(basis.device, basis.shape.sharing, servers);
  basis.isolation = IsolationOf(basis.device, basis.shape, servers);
  if (const auto server = servers.find(basis.device);
      server != servers.end() && basis.shape.sharing == Sharing::kServer)
    basis.limits = LimitsOf(server->second);
  return basis;
}

/// Determines which of a device's slots its holders leave free.
class Takers {
 public:
  Takers(const Basis& basis, const std::vector<OfferedSlot>& slots)
      : basis_(basis), taker_(slots.size(), nullptr) {
    std::unordered_map<std::string_view, std::size_t> places;
    for (std::size_t place = 0; place < slots.size(); ++place)
      places.emplace(slots[place].slot.id, place);
    int beyond = 0;
    for (const Holding& one : basis.held) {
      const auto place = places.find(one.slot.id);
      if (place != places.end()) taker_[place->second] = &one;
      if (!Fits(one)) {
        if (unlike_ == nullptr) unlike_ = &one;
      } else if (place == places.end()) {
        if (former_ == nullptr) former_ = &one;
        ++beyond;
      }
    }
    kept_from_ = taker_.size();
    while (beyond > 0 && kept_from_ > 0)
      if (taker_[--kept_from_] == nullptr) --beyond;
  }

  /// Why the allocator must not allocate this slot; empty where it may, or has done so itself.
  std::string ReasonOf(std::size_t place) const {
    const Holding* taker = taker_[place];
    if (taker != nullptr && IsKnown(*taker)) return "";
    if (taker == nullptr) taker = unlike_;
    if (taker == nullptr && place >= kept_from_) taker = former_;
    return taker == nullptr ? "" : "still held by " + taker->holder + " as previously offered";
  }

  /// Whether the slot is held in a shape that is no longer in force.
  bool IsFormer(std::size_t place) const {
    return taker_[place] != nullptr && !Fits(*taker_[place]);
  }

 private:
  /// The allocator itself counts this slot as taken.
  bool IsKnown(const Holding& one) const {
    return one.allocator == basis_.assignment.allocator &&
           (one.slot.resource.empty() || one.slot.resource == basis_.assignment.resource);
  }

  /// Whether this slot and the slots of the shape in force can be held together.
  bool Fits(const Holding& one) const {
    if (IsWhole(one.slot) || basis_.shape.shares == 1)
      return IsWhole(one.slot) && basis_.shape.shares == 1;
    return ledger::GoTogether(one.slot.shape, basis_.shape);
  }

  const Basis& basis_;
  std::vector<const Holding*> taker_;  // by position
  const Holding* unlike_ = nullptr;    // a holder that excludes all others
  const Holding* former_ = nullptr;    // holds a share that is not in the list
  std::size_t kept_from_ = 0;  // from here on, free shares stay free for the holders of such shares
};

std::vector<OfferedSlot> SlotsOf(const Basis& basis) {
  std::vector<OfferedSlot> slots;
  slots.reserve(static_cast<std::size_t>(basis.shape.shares));
  const bool cut = basis.shape != basis.assignment.shape;
  const bool held = basis.reason.empty() && !basis.tree_reason.empty();
  const std::string& reason = held                   ? basis.tree_reason
                              : basis.reason.empty() ? basis.server_reason
                                                     : basis.reason;
  for (int share = 0; share < basis.shape.shares; ++share)
    slots.push_back(
        {{SlotId(basis.device, basis.shape, share), basis.device, basis.assignment.resource,
          basis.shape, basis.ancestors, basis.capacity, basis.limits},
         reason.empty(),
         reason,
         basis.numa_node,
         basis.isolation,
         cut,
         held,
         held});
  if (held || basis.held.empty() || !basis.reason.empty()) return slots;
  const Takers takers(basis, slots);
  for (std::size_t place = 0; place < slots.size(); ++place) {
    std::string former = takers.ReasonOf(place);
    if (former.empty() && !takers.IsFormer(place)) continue;
    slots[place].usable = former.empty();
    slots[place].held = !former.empty();
    slots[place].reason = std::move(former);
  }
  return slots;
}

}  // namespace

device::Isolation IsolationOf(const std::string& device, const device::Shape& shape,
                              const device::SharedDevices& servers) {
  if (shape.sharing == Sharing::kNone) return device::Isolation::kHardware;
  const auto server = servers.find(device);
  return shape.sharing == Sharing::kServer && server != servers.end() ? server->second.isolation
                                                                      : device::Isolation::kNone;
}

bool NeverRead(const inventory::Entry& entry) {
  return entry.health.state == device::HealthState::kUnknown && entry.read_at == base::WallTime{};
}

struct OfferBook::Page {
  Basis basis;
  std::vector<OfferedSlot> slots;
};

OfferBook::OfferBook() = default;
OfferBook::~OfferBook() = default;

bool OfferBook::Update(const Assignments& assignments, const inventory::Snapshot& inventory,
                       const ledger::Snapshot& ledger, const device::SharedDevices& servers) {
  std::unordered_map<std::string, Page*> before;
  for (Page& page : pages_) before.emplace(page.basis.device, &page);
  const Held held(ledger);
  std::vector<Page> pages;
  pages.reserve(inventory.devices.size());
  bool changed = false;
  for (const inventory::Entry& entry : inventory.devices) {
    const auto assignment = assignments.find(entry.facts->id);
    if (assignment == assignments.end() || assignment->second.allocator.empty() ||
        !entry.withheld.empty() || NeverRead(entry))
      continue;
    Basis basis = BasisOf(entry, assignment->second, held, inventory, ledger, servers);
    const auto known = before.find(basis.device);
    changed |= known == before.end() ||
               static_cast<std::size_t>(known->second - pages_.data()) != pages.size();
    if (known != before.end() && known->second->basis == basis) {
      pages.push_back(std::move(*known->second));
      continue;
    }
    std::vector<OfferedSlot> slots = SlotsOf(basis);
    changed |= known == before.end() || slots != known->second->slots ||
               basis.assignment != known->second->basis.assignment;
    pages.push_back({std::move(basis), std::move(slots)});
  }
  changed |= pages.size() != pages_.size();
  pages_ = std::move(pages);
  return changed;
}

std::vector<Offer> OfferBook::Get() const {
  std::vector<Offer> offers;
  for (const Page& page : pages_) {
    const Assignment& assignment = page.basis.assignment;
    auto offer = std::ranges::find_if(offers, [&](const Offer& one) {
      return one.resource == assignment.resource && one.allocator == assignment.allocator;
    });
    if (offer == offers.end())
      offer = offers.insert(
          offers.end(), Offer{.resource = assignment.resource, .allocator = assignment.allocator});
    offer->slots.insert(offer->slots.end(), page.slots.begin(), page.slots.end());
    offer->single = offer->single || assignment.single;
    offer->by_profile = offer->by_profile || assignment.by_profile;
  }
  return offers;
}

std::vector<Offer> ComputeOffers(const Assignments& assignments,
                                 const inventory::Snapshot& inventory,
                                 const ledger::Snapshot& ledger,
                                 const device::SharedDevices& servers) {
  OfferBook book;
  book.Update(assignments, inventory, ledger, servers);
  return book.Get();
}

}  // namespace penstock::node::share
