// Finds which devices suit a request and which of them are free, and says why others are not.
#include <algorithm>
#include <map>

#include "base/core/strings.h"
#include "node/allocate/allocate.h"
#include "node/allocate/ranked.h"
#include "node/ledger/capacity.h"
#include "node/share/assignment.h"
#include "node/share/describe.h"

namespace penstock::node::allocate {

using ledger::Slot;

namespace {

/// A device of the allocator, with its offered slots.
struct Candidate {
  const device::Facts* facts = nullptr;
  std::vector<const share::OfferedSlot*> slots;  // in order of share

  int shares() const { return slots.front()->slot.shape.shares; }
  bool cut() const { return slots.front()->cut; }
  bool IsWhole() const {
    return shares() == 1 || cut();
  }  // a device that was cut is assigned whole, so requests for any shape can have it in turn
};

/// "2 GPUs". `device`: what a device of this node is called.
std::string Devices(std::size_t count, const std::string& device) {
  return std::to_string(count) + " " + device + (count == 1 ? "" : "s");
}

/// "2 GPUs of model A100*", "one of 4 shares of 2 GPUs".
std::string What(const Request& request, const std::string& device) {
  std::string text =
      request.share > 1 ? "one of " + std::to_string(request.share) + " shares of " : "";
  text += Devices(static_cast<std::size_t>(request.count), device);
  return request.model.empty() ? text : text + " of model " + request.model;
}

std::vector<Candidate> CandidatesOf(const Request& request, const inventory::Snapshot& inventory,
                                    const std::vector<share::Offer>& offers) {
  std::map<std::string_view, Candidate> by_device;
  for (const share::Offer& offer : offers)
    if (offer.allocator == request.allocator)
      for (const share::OfferedSlot& slot : offer.slots)
        by_device[slot.slot.device].slots.push_back(&slot);
  std::vector<Candidate> candidates;
  for (const inventory::Entry& entry : inventory.devices) {
    const auto offered = by_device.find(entry.facts->id);
    if (offered == by_device.end() ||
        !(request.model.empty() || device::ModelMatches(request.model, entry.facts->model)))
      continue;
    offered->second.facts = entry.facts.get();
    candidates.push_back(std::move(offered->second));
  }
  return candidates;
}

/// Whether the configuration ever allows this request to have the device.
bool Suits(const Candidate& candidate, const Request& request) {
  return candidate.IsWhole() || candidate.shares() == request.share;
}

std::string HeldBy(const ledger::Lease& lease) {
  std::string text =
      "held by " + (lease.pod.empty() ? lease.id : lease.namespace_name + "/" + lease.pod);
  return lease.user.empty() ? text : text + " of " + lease.user;
}

/// Why a slot is not free now.
struct Obstacle {
  std::string reason;  // empty: it is free
  bool held = false;   // a lease holds it; else it cannot be allocated now, whichever leases end
};

Obstacle ObstacleOf(const share::OfferedSlot& slot, const ledger::Snapshot& ledger) {
  if (!slot.usable) return {slot.reason, slot.held};
  const ledger::Lease* holder = ledger.InTheWayOf(slot.slot);
  return holder == nullptr ? Obstacle{} : Obstacle{HeldBy(*holder), true};
}

/// A device with the slot that the request can get, or with why it cannot get one now.
struct Offered {
  Slot slot;
  Obstacle obstacle;
  bool shared = false;  // other shares of the device may be held
};

Offered CutFrom(const Candidate& candidate, int shares) {
  const device::Shape shape{device::Sharing::kTimeSlicing, shares};
  Slot slot = candidate.slots.front()->slot;
  slot.id = share::SlotId(candidate.facts->id, shape, 0);
  slot.shape = shape;
  slot.limits = {};
  return {std::move(slot), {}, false};
}

Offered Check(const Candidate& candidate, const Request& request, const ledger::Snapshot& ledger) {
  if (candidate.shares() == 1) {
    const share::OfferedSlot& whole = *candidate.slots.front();
    Offered offered =
        request.share == 1 ? Offered{whole.slot, {}, false} : CutFrom(candidate, request.share);
    offered.obstacle = ObstacleOf(whole, ledger);
    return offered;
  }
  const bool as_requested = candidate.shares() == request.share;
  std::string first;
  bool held = false;
  for (const share::OfferedSlot* slot : candidate.slots) {
    Obstacle obstacle = ObstacleOf(*slot, ledger);
    if (obstacle.reason.empty() && as_requested) return {slot->slot, {}, true};
    held = held || obstacle.held;
    if (first.empty()) first = std::move(obstacle.reason);
  }
  const std::string shares = std::to_string(candidate.shares()) + " shares";
  return {{},
          {(as_requested ? "none of its " + shares + " is available: "
                         : "divided into " + shares + ", ") +
               first,
           held}};
}

/// Whether the slot of a part fits beside all that is held, and beside what was found free before
/// it: what is chosen from the latter can then be allocated together.
bool FitsTogether(const Slot& slot, const std::vector<Offered>& free,
                  const ledger::Snapshot& ledger) {
  if (slot.ancestors.empty()) return true;
  ledger::RoomFor room(slot);
  for (const ledger::Lease& lease : ledger.leases)
    for (const Slot& held : lease.slots)
      if (!room.Beside(held)) return false;
  return std::ranges::all_of(free, [&room](const Offered& one) { return room.Beside(one.slot); });
}

int SharesTaken(const std::string& device, const ledger::Snapshot& ledger) {
  int taken = 0;
  for (const ledger::Lease& lease : ledger.leases)
    taken += static_cast<int>(std::ranges::count_if(
        lease.slots, [&device](const Slot& slot) { return slot.device == device; }));
  return taken;
}

Error NothingFound() {
  return {Code::kResourceExhausted, "no device has been found on this node yet"};
}

Error NotOffered(const std::string& wanted, const inventory::Snapshot& inventory,
                 const std::string& allocator) {
  if (inventory.devices.empty()) return NothingFound();
  for (const inventory::Entry& entry : inventory.devices) {
    if (!IsNamed(*entry.facts, wanted)) continue;
    if (!entry.withheld.empty())
      return {Code::kFailedPrecondition,
              share::Describe(*entry.facts) + " is not offered: " + entry.withheld};
    if (share::NeverRead(entry))
      return {Code::kResourceExhausted, share::Describe(*entry.facts) + " has not been read yet"};
    return {Code::kFailedPrecondition, share::Describe(*entry.facts) + " is not assigned to " +
                                           share::DescribeAllocator(allocator) +
                                           " (see `penstock status`)"};
  }
  return {Code::kNotFound,
          "there is no device " + wanted + " on this node (see `penstock status`)"};
}

/// "GPU 0 (...) is shared 4 ways: ask with --share 4".
std::string SharedOtherwise(const Candidate& candidate) {
  const std::string shares = std::to_string(candidate.shares());
  return share::Describe(*candidate.facts) + " is shared " + shares +
         " ways: request it with --share " + shares;
}

Result<std::vector<Slot>> ReserveNamed(const Request& request, const inventory::Snapshot& inventory,
                                       const ledger::Snapshot& ledger,
                                       const std::vector<Candidate>& candidates) {
  std::vector<Slot> slots;
  std::vector<const Candidate*> named;
  std::string held, blocked;  // the first of each kind
  for (const std::string& wanted : request.devices) {
    const auto found = std::ranges::find_if(
        candidates, [&](const Candidate& one) { return IsNamed(*one.facts, wanted); });
    if (found == candidates.end()) return NotOffered(wanted, inventory, request.allocator);
    if (std::ranges::find(named, &*found) != named.end())
      return Error(Code::kInvalidArgument, "device " + wanted + " is named twice");
    named.push_back(&*found);
    if (!Suits(*found, request)) return Error(Code::kFailedPrecondition, SharedOtherwise(*found));
    Offered offered = Check(*found, request, ledger);
    if (std::string& first = offered.obstacle.held ? held : blocked;
        !offered.obstacle.reason.empty() && first.empty())
      first = share::Describe(*found->facts) + ": " + offered.obstacle.reason;
    slots.push_back(std::move(offered.slot));
  }
  if (!blocked.empty()) return Error(Code::kUnavailable, blocked);
  if (!held.empty()) return Error(Code::kResourceExhausted, held);
  return slots;
}

/// Says that the allocator does not have the requested devices, and which request is possible; or
/// that this is not known yet.
Error Never(const Request& request, const std::vector<Candidate>& candidates, std::size_t suitable,
            const inventory::Snapshot& inventory) {
  if (inventory.devices.empty()) return NothingFound();
  const std::string device = share::NameOfDevices(inventory);
  const auto unseen = std::ranges::count_if(inventory.devices, share::NeverRead);
  if (unseen > 0)
    return {Code::kResourceExhausted,
            Devices(static_cast<std::size_t>(unseen), device) + " of this node not read yet"};
  const auto misfit = std::ranges::find_if(
      candidates, [&request](const Candidate& candidate) { return !Suits(candidate, request); });
  const std::string text = "requested " + What(request, device) + ", but this node has ";
  const std::string assigned = std::string(request.model.empty() ? "" : " of that model") +
                               " assigned to " + share::DescribeAllocator(request.allocator);
  if (misfit == candidates.end())
    return {Code::kFailedPrecondition, text + Devices(suitable, device) + assigned};
  if (request.share == 1 && suitable == 0)
    return {Code::kFailedPrecondition, "all " + device + "s" + assigned +
                                           " are shared, and a whole " + device +
                                           " was requested; " + SharedOtherwise(*misfit)};
  return {Code::kFailedPrecondition, text + Devices(suitable, device) + " with such shares" +
                                         assigned + "; " + SharedOtherwise(*misfit)};
}

/// Chooses shares of devices that are already shared, the fullest first, before whole devices;
/// among equals the best-linked.
std::vector<Slot> Choose(const std::vector<const device::Facts*>& devices,
                         const std::vector<Offered>& free, std::size_t count,
                         const ledger::Snapshot& ledger) {
  std::vector<Ranked> candidates;
  for (std::size_t i = 0; i < free.size(); ++i)
    candidates.push_back({i, free[i].shared ? -1 - SharesTaken(free[i].slot.device, ledger) : 0});
  std::vector<Slot> slots;
  for (const std::size_t position :
       ChooseRanked(DeviceLinks(devices), std::move(candidates), {}, count))
    slots.push_back(free[position].slot);
  return slots;
}

}  // namespace

std::set<std::string> DevicesFor(const Request& request, const inventory::Snapshot& inventory,
                                 const std::vector<share::Offer>& offers) {
  std::set<std::string> devices;
  for (const Candidate& candidate : CandidatesOf(request, inventory, offers)) {
    const bool named =
        request.devices.empty() ||
        std::ranges::any_of(request.devices, [&candidate](const std::string& wanted) {
          return IsNamed(*candidate.facts, wanted);
        });
    if (named && Suits(candidate, request)) devices.insert(candidate.facts->id);
  }
  return devices;
}

Result<std::vector<Slot>> Reserve(const Request& request, const inventory::Snapshot& inventory,
                                  const ledger::Snapshot& ledger,
                                  const std::vector<share::Offer>& offers) {
  if (request.share < 1)
    return Error(Code::kInvalidArgument, "requested a share of " + std::to_string(request.share) +
                                             "; request 2 or more, or a whole device");
  if (request.limits != device::Limits{})
    return Error(Code::kFailedPrecondition,
                 "this node cannot enforce a limit of " +
                     std::string(request.limits.memory.count > 0 ? "memory" : "compute time") +
                     " for a single run; request a share or a whole device without it");
  const auto candidates = CandidatesOf(request, inventory, offers);
  if (!request.devices.empty()) return ReserveNamed(request, inventory, ledger, candidates);
  if (request.count < 1)
    return Error(Code::kInvalidArgument,
                 "asked for " + std::to_string(request.count) + " devices; request 1 or more");
  const auto count = static_cast<std::size_t>(request.count);

  std::vector<const device::Facts*> devices;
  std::vector<Offered> free;
  std::size_t suitable = 0;
  std::size_t blocked = 0;
  std::string last_obstacle, last_blocked;
  for (const Candidate& candidate : candidates) {
    if (!Suits(candidate, request)) continue;
    ++suitable;
    Offered offered = Check(candidate, request, ledger);
    if (offered.obstacle.reason.empty() && !FitsTogether(offered.slot, free, ledger))
      offered.obstacle = {"there is no room for it beside other parts of its device", true};
    if (offered.obstacle.reason.empty()) {
      devices.push_back(candidate.facts);
      free.push_back(std::move(offered));
      continue;
    }
    last_obstacle = share::Describe(*candidate.facts) + ": " + offered.obstacle.reason;
    if (offered.obstacle.held) continue;
    ++blocked;
    last_blocked = last_obstacle;
  }
  if (suitable < count) return Never(request, candidates, suitable, inventory);
  if (free.size() >= count) return Choose(devices, free, count, ledger);
  const bool too_few = suitable - blocked < count;
  return Error(too_few ? Code::kUnavailable : Code::kResourceExhausted,
               std::to_string(count) + " requested, " + std::to_string(free.size()) + " of " +
                   std::to_string(suitable) + " free; " + (too_few ? last_blocked : last_obstacle));
}

}  // namespace penstock::node::allocate
