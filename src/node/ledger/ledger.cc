// Changes the ledger: all or nothing, one publication for each change.
#include "node/ledger/ledger.h"

#include <algorithm>

#include "base/core/strings.h"
#include "node/ledger/capacity.h"

namespace penstock::node::ledger {

namespace {

// More than any configuration has; limits numbers that come from other programs' ids.
constexpr std::int64_t kMaxShares = 1'000'000;

/// Where a lease is or would be.
Leases::const_iterator PlaceOf(const Leases& leases, std::string_view id) {
  return std::lower_bound(leases.begin(), leases.end(), id,
                          [](const Lease& lease, std::string_view i) { return lease.id < i; });
}

}  // namespace

std::string_view ToString(Enforcement enforcement) {
  return enforcement == Enforcement::kDevices ? "devices" : "visibility";
}

Slot WithShape(Slot slot) {
  if (slot.id == slot.device || slot.shape.sharing != device::Sharing::kNone) return slot;
  const auto end = slot.id.find_last_not_of("0123456789");
  const auto number =
      base::ParseInt(std::string_view(slot.id).substr(end == std::string::npos ? 0 : end + 1))
          .value_or(0);
  slot.shape = {device::Sharing::kTimeSlicing,
                static_cast<int>(std::clamp<std::int64_t>(number + 1, 2, kMaxShares))};
  return slot;
}

const Lease* Snapshot::FindLease(std::string_view id) const {
  const auto found = PlaceOf(leases, id);
  return found == leases.end() || found->id != id ? nullptr : &*found;
}

const Lease* Snapshot::HolderOf(std::string_view device) const {
  const auto found = std::ranges::find_if(leases, [device](const Lease& lease) {
    return std::ranges::any_of(lease.slots, [device](const Slot& slot) {
      return slot.device == device || IsPartOf(slot, device);
    });
  });
  return found == leases.end() ? nullptr : &*found;
}

const Lease* Snapshot::InTheWayOf(const Slot& slot) const {
  RoomFor room(slot);
  for (const Lease& lease : leases)
    for (const Slot& held : lease.slots)
      if (!room.Beside(held)) return &lease;
  return nullptr;
}

bool Snapshot::IsOutside(std::string_view device, pid_t pid) const {
  const auto found = outside.find(std::string(device));
  return found != outside.end() &&
         std::ranges::find(found->second, pid, &Process::pid) != found->second.end();
}

bool Snapshot::Free(std::string_view device) const {
  return HolderOf(device) == nullptr && !outside.contains(std::string(device));
}

void Ledger::Publish(Snapshot next) {
  ++next.generation;
  published_.Set(std::move(next));
}

base::Status Ledger::Add(Lease lease) {
  const auto now = Get();
  std::ranges::transform(lease.slots, lease.slots.begin(), WithShape);
  if (now->FindLease(lease.id) != nullptr)
    return Error(Code::kAlreadyExists, "lease " + lease.id + " already exists");
  for (auto slot = lease.slots.begin(); slot != lease.slots.end(); ++slot) {
    if (const Lease* other = now->InTheWayOf(*slot))
      return Error(Code::kAlreadyExists, slot->id + " is held by " + other->id);
    if (slot == lease.slots.begin()) continue;
    RoomFor room(*slot);
    if (!slot->ancestors.empty())
      for (const Lease& other : now->leases)
        for (const Slot& held : other.slots) (void)room.Beside(held);
    for (auto before = lease.slots.begin(); before != slot; ++before)
      if (!room.Beside(*before))
        return Error(Code::kInvalidArgument,
                     slot->id + " cannot be allocated together with " + before->id);
  }
  Snapshot next = *now;
  const auto place = PlaceOf(next.leases, lease.id);
  next.leases.insert(place, std::move(lease));
  Publish(std::move(next));
  return {};
}

// Detects an update without changes before it copies the snapshot: callers that look at every
// holder call this for thousands of leases.
base::Status Ledger::Update(const Lease& lease) {
  const auto now = Get();
  const Lease* found = now->FindLease(lease.id);
  if (found == nullptr) return Error(Code::kNotFound, "there is no lease " + lease.id);
  Lease updated = lease;
  updated.slots = found->slots;
  updated.allocator = found->allocator;
  updated.since = found->since;
  if (updated == *found) return {};
  Snapshot next = *now;
  const auto place = PlaceOf(next.leases, lease.id);
  next.leases.Replace(place, std::move(updated));
  Publish(std::move(next));
  return {};
}

void Ledger::Release(const std::string& id) {
  if (Get()->FindLease(id) == nullptr) return;
  Snapshot next = *Get();
  next.leases.EraseIf([&id](const Lease& lease) { return lease.id == id; });
  Publish(std::move(next));
}

void Ledger::SetAttributed(Attributed attributed) {
  const auto now = Get();
  const auto has_none = [](const auto& one) { return one.second.empty(); };
  std::erase_if(attributed.outside, has_none);
  std::erase_if(attributed.graphics, has_none);
  std::vector<Lease> updated;
  for (auto& [id, processes] : attributed.by_lease) {
    const Lease* lease = now->FindLease(id);
    if (lease == nullptr || lease->processes == processes) continue;
    updated.push_back(*lease);
    updated.back().processes = std::move(processes);
  }
  if (updated.empty() && attributed.outside == now->outside && attributed.graphics == now->graphics)
    return;
  Snapshot next = *now;
  next.outside = std::move(attributed.outside);
  next.graphics = std::move(attributed.graphics);
  for (Lease& lease : updated) {
    const auto place = PlaceOf(next.leases, lease.id);
    next.leases.Replace(place, std::move(lease));
  }
  Publish(std::move(next));
}

}  // namespace penstock::node::ledger
