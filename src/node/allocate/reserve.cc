// Finds which of the devices that suit a request are free, and says why others are not.
#include <algorithm>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/core/strings.h"
#include "node/allocate/allocate.h"
#include "node/allocate/candidates.h"
#include "node/allocate/ranked.h"
#include "node/ledger/capacity.h"
#include "node/share/assignment.h"
#include "node/share/describe.h"

namespace penstock::node::allocate {

using ledger::Slot;

namespace {

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

Error NotOffered(const std::string& wanted, const inventory::Snapshot& inventory,
                 const Request& request) {
  if (inventory.devices.empty()) return NothingFound();
  for (const inventory::Entry& entry : inventory.devices) {
    if (!IsNamed(*entry.facts, wanted) ||
        (!request.vendor.empty() && request.vendor != entry.facts->vendor))
      continue;
    if (!entry.withheld.empty())
      return {Code::kFailedPrecondition,
              share::Describe(*entry.facts) + " is not offered: " + entry.withheld};
    if (share::NeverRead(entry))
      return {Code::kResourceExhausted, share::Describe(*entry.facts) + " has not been read yet"};
    return {Code::kFailedPrecondition, share::Describe(*entry.facts) + " is not assigned to " +
                                           share::DescribeAllocator(request.allocator) +
                                           " (see `penstock status`)"};
  }
  return {Code::kNotFound, "there is no device " + wanted +
                               (request.vendor.empty() ? "" : " of vendor " + request.vendor) +
                               " on this node (see `penstock status`)"};
}

/// The candidates of which the request could ever get a slot.
std::vector<Candidate> Requested(const RequestContext& context) {
  const Request& request = context.request;
  std::vector<Candidate> requested = CandidatesOf(context);
  std::erase_if(requested, [&request](const Candidate& candidate) {
    const bool named = request.devices.empty() ||
                       std::ranges::any_of(request.devices, [&](const std::string& wanted) {
                         return IsNamed(*candidate.facts, wanted);
                       });
    return !named || !Suits(candidate, request);
  });
  if (!request.devices.empty()) return requested;
  // Nothing of a vendor that has too few can help where another has enough.
  std::map<std::string, int> by_vendor;
  for (const Candidate& candidate : requested) ++by_vendor[candidate.facts->vendor];
  const auto enough = [&](const auto& vendor) { return vendor.second >= request.count; };
  if (std::ranges::any_of(by_vendor, enough))
    std::erase_if(requested, [&](const Candidate& candidate) {
      return by_vendor[candidate.facts->vendor] < request.count;
    });
  return requested;
}

/// Vendors number their devices each from 0.
base::Status CheckUnambiguous(const std::string& wanted, const std::vector<Candidate>& candidates) {
  std::vector<std::string> vendors;
  for (const Candidate& one : candidates)
    if (IsNamed(*one.facts, wanted)) vendors.push_back(one.facts->vendor);
  if (vendors.size() < 2) return {};
  return Error(Code::kInvalidArgument, "there is a device " + wanted + " of " +
                                           base::Join(vendors, " and one of ") +
                                           "; name the vendor, too (--vendor), or use an id");
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
    if (found == candidates.end()) return NotOffered(wanted, inventory, request);
    TRY(CheckUnambiguous(wanted, candidates));
    if (std::ranges::find(named, &*found) != named.end())
      return Error(Code::kInvalidArgument, "device " + wanted + " is named twice");
    named.push_back(&*found);
    if (!Suits(*found, request))
      return Error(Code::kFailedPrecondition, WhyUnsuited(*found, request));
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

/// What makes one candidate better than another before links and packing: it has less memory, for a
/// request that names the memory; then, it is already shared, and the fullest of these.
std::vector<Ranked> Rank(const Request& request, const std::vector<const device::Facts*>& devices,
                         const std::vector<Offered>& free, const ledger::Snapshot& ledger) {
  using Order = std::pair<base::Bytes, int>;
  std::vector<Order> keys;
  for (std::size_t i = 0; i < free.size(); ++i)
    keys.emplace_back(request.least_memory.count > 0 ? devices[i]->memory : base::Bytes{},
                      free[i].shared ? -1 - SharesTaken(free[i].slot.device, ledger) : 0);
  std::vector<Order> sorted = keys;
  std::ranges::sort(sorted);
  std::vector<Ranked> candidates;
  for (std::size_t i = 0; i < free.size(); ++i)
    candidates.push_back(
        {i, static_cast<int>(std::ranges::lower_bound(sorted, keys[i]) - sorted.begin()),
         &free[i].slot});
  return candidates;
}

std::vector<Slot> Choose(const Request& request, const std::vector<const device::Facts*>& devices,
                         const std::vector<Offered>& free, const ledger::Snapshot& ledger) {
  PartsInUse in_use(ledger);
  std::vector<Slot> slots;
  for (const std::size_t position :
       ChooseRanked(LinksToConsider(devices), Rank(request, devices, free, ledger), {},
                    static_cast<std::size_t>(request.count), in_use))
    slots.push_back(free[position].slot);
  return slots;
}

/// What the request waits for: the last obstacle, or of parts the first few, so that it says who
/// holds them.
std::string Describe(const std::vector<std::string>& obstacles, bool all) {
  constexpr std::size_t kMost = 4;
  if (!all) return obstacles.back();
  const std::size_t shown = std::min(kMost, obstacles.size());
  std::string text = base::Join(std::span(obstacles).first(shown), "; ");
  if (obstacles.size() > shown)
    text += "; and " + std::to_string(obstacles.size() - shown) + " more";
  return text;
}

/// Why the request can never be served, whatever the node has.
base::Status Check(const Request& request) {
  if (request.share < 1)
    return Error(Code::kInvalidArgument, "requested a share of " + std::to_string(request.share) +
                                             "; request 2 or more, or a whole device");
  if (request.share > 1 && request.least_memory.count > 0)
    return Error(Code::kInvalidArgument,
                 "a share has no memory of its own: request a share, or a device or part by its "
                 "memory");
  return {};
}

/// Reserves of these candidates, whatever their vendors.
Result<std::vector<Slot>> ReserveAmong(const RequestContext& context,
                                       const ledger::Snapshot& ledger,
                                       const std::vector<Candidate>& candidates) {
  const Request& request = context.request;
  const auto count = static_cast<std::size_t>(request.count);

  std::vector<const device::Facts*> devices;
  std::vector<Offered> free;
  std::size_t suitable = 0;
  std::vector<std::string> obstacles, blocked;
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
    obstacles.push_back(share::Describe(*candidate.facts) + ": " + offered.obstacle.reason);
    if (!offered.obstacle.held) blocked.push_back(obstacles.back());
  }
  if (suitable < count) return Never(context, candidates, suitable);
  if (free.size() >= count) return Choose(request, devices, free, ledger);
  const bool too_few = suitable - blocked.size() < count;
  const bool all = !request.profile.empty() || request.least_memory.count > 0;
  return Error(too_few ? Code::kUnavailable : Code::kResourceExhausted,
               std::to_string(count) + " requested, " + std::to_string(free.size()) + " of " +
                   std::to_string(suitable) + " free; " +
                   Describe(too_few ? blocked : obstacles, all));
}

base::Bytes MemoryOf(const std::vector<Slot>& slots, const inventory::Snapshot& inventory) {
  base::Bytes sum;
  for (const Slot& slot : slots)
    if (const inventory::Entry* entry = inventory.Find(slot.device))
      sum.count += entry->facts->memory.count;
  return sum;
}

/// How soon a request that failed so can be served: 0 is the soonest.
constexpr int kNever = 2;
int Distance(const Error& error) {
  if (error.code() == Code::kResourceExhausted) return 0;
  return error.code() == Code::kUnavailable ? 1 : kNever;
}

/// In the inventory's order.
std::vector<std::string> VendorsOf(const std::vector<Candidate>& candidates) {
  std::vector<std::string> vendors;
  for (const Candidate& candidate : candidates)
    if (std::ranges::find(vendors, candidate.facts->vendor) == vendors.end())
      vendors.push_back(candidate.facts->vendor);
  return vendors;
}

/// Why no vendor has enough, of errors by vendor.
Error NoneOf(const std::vector<std::pair<std::string, Error>>& errors,
             const RequestContext& context, const std::vector<Candidate>& candidates) {
  const auto distance = [](const auto& one) { return Distance(one.second); };
  const auto& nearest = std::ranges::min(errors, {}, distance);
  if (distance(nearest) == kNever) return NeverOfOneVendor(context, candidates);
  std::vector<std::string> texts;
  for (const auto& one : errors)
    if (distance(one) == distance(nearest))
      texts.push_back(one.first + ": " + one.second.message());
  return Error(nearest.second.code(), base::Join(texts, "; "));
}

/// Reserves of one of several vendors.
Result<std::vector<Slot>> ReserveOfOneVendor(const RequestContext& context,
                                             const ledger::Snapshot& ledger,
                                             const std::vector<Candidate>& candidates) {
  std::vector<std::pair<std::string, Error>> errors;
  std::optional<std::vector<Slot>> best;
  base::Bytes least;
  for (const std::string& vendor : VendorsOf(candidates)) {
    Request request = context.request;
    request.vendor = vendor;
    std::vector<Candidate> of_vendor = candidates;
    std::erase_if(of_vendor, [&](const Candidate& one) { return one.facts->vendor != vendor; });
    auto slots = ReserveAmong({request, context.inventory, context.offers, context.dialect_of},
                              ledger, of_vendor);
    if (!slots.ok()) {
      errors.emplace_back(vendor, slots.error());
      continue;
    }
    if (request.least_memory.count == 0) return slots;
    const base::Bytes memory = MemoryOf(*slots, context.inventory);
    if (best && least <= memory) continue;
    best = *std::move(slots);
    least = memory;
  }
  if (best) return *std::move(best);
  return NoneOf(errors, context, candidates);
}

}  // namespace

std::set<std::string> DevicesFor(const Request& request, const inventory::Snapshot& inventory,
                                 const std::vector<share::Offer>& offers,
                                 const device::DialectOf& dialect_of) {
  std::set<std::string> devices;
  for (const Candidate& candidate : Requested({request, inventory, offers, dialect_of}))
    devices.insert(candidate.facts->id);
  return devices;
}

double AmountOf(const Request& request, const inventory::Snapshot& inventory,
                const std::vector<share::Offer>& offers, const device::DialectOf& dialect_of) {
  const double devices = static_cast<double>(request.count) / request.share;
  const auto parts = [](const share::Offer& offer) {
    return std::ranges::any_of(offer.slots, [](const share::OfferedSlot& offered) {
      return !offered.slot.ancestors.empty();
    });
  };
  if (std::ranges::none_of(offers, parts)) return devices;
  double largest = 0;
  for (const Candidate& candidate : Requested({request, inventory, offers, dialect_of})) {
    Slot whole = candidate.slots.front()->slot;
    whole.shape = {};
    largest = std::max(largest, ledger::FractionOf(whole));
  }
  return largest > 0 ? devices * largest : devices;
}

Result<std::vector<Slot>> Reserve(const Request& request, const inventory::Snapshot& inventory,
                                  const ledger::Snapshot& ledger,
                                  const std::vector<share::Offer>& offers,
                                  const device::DialectOf& dialect_of) {
  TRY(Check(request));
  const RequestContext context{request, inventory, offers, dialect_of};
  const auto candidates = CandidatesOf(context);
  if (!request.devices.empty()) return ReserveNamed(request, inventory, ledger, candidates);
  if (request.count < 1)
    return Error(Code::kInvalidArgument,
                 "asked for " + std::to_string(request.count) + " devices; request 1 or more");
  return VendorsOf(candidates).size() > 1 ? ReserveOfOneVendor(context, ledger, candidates)
                                          : ReserveAmong(context, ledger, candidates);
}

}  // namespace penstock::node::allocate
