// Simulates the ends of leases one after another, and calls Reserve after each.
#include "node/allocate/outlook.h"

#include <algorithm>
#include <utility>

#include "node/ledger/capacity.h"

namespace penstock::node::allocate {
namespace {

using ledger::Lease;
using ledger::Slot;

/// Of a request for more parts, none is created for it.
constexpr int kMostCreated = 64;

/// The ledger after some leases have ended and others have begun.
class Future {
 public:
  explicit Future(const Outlook& outlook) : outlook_(outlook), ledger_(outlook.ledger) {}

  void End(const std::string& id) {
    ledger_.leases.EraseIf([&id](const Lease& lease) { return lease.id == id; });
  }
  void Begin(const std::string& id, const std::vector<Slot>& slots) {
    ledger_.leases.push_back({.id = id, .slots = slots});
  }

  /// Whether it is served once all leases have ended.
  bool IsServedAtAll(const Request& request) const {
    Future last = *this;
    last.ledger_.leases.clear();
    return last.Reserve(request).ok();
  }

  base::Result<std::vector<Slot>> Reserve(const Request& request) const {
    const std::vector<share::Offer> offers = Offers();
    auto slots =
        allocate::Reserve(request, outlook_.inventory, ledger_, offers, outlook_.dialect_of);
    if (slots.ok() || !outlook_.create || !MayBeCreatedFor(request)) return slots;
    Lacking some = ReserveSome(request, outlook_.inventory, ledger_, offers, outlook_.dialect_of);
    ledger::Snapshot with_some = ledger_;
    with_some.leases.push_back({.id = "some", .slots = some.slots});
    const auto created = outlook_.create(request, some.missing, with_some);
    if (!created) return slots;
    some.slots.insert(some.slots.end(), created->begin(), created->end());
    return some.slots;
  }

 private:
  /// Slots that were held when the offers were made may be free by then: the ledger says which are
  /// still held. A device that was cut for a request is whole again once no share of it is held.
  std::vector<share::Offer> Offers() const {
    std::vector<share::Offer> offers = outlook_.offers;
    for (share::Offer& offer : offers) {
      std::set<std::string> whole;
      for (share::OfferedSlot& slot : offer.slots) {
        slot.usable = slot.usable || slot.held;
        if (!slot.cut || ledger_.HolderOf(slot.slot.device) != nullptr) continue;
        slot.cut = false;
        slot.slot.id = slot.slot.device;
        slot.slot.shape = {};
        slot.slot.limits = {};
      }
      std::erase_if(offer.slots, [&whole](const share::OfferedSlot& slot) {
        return slot.slot.id == slot.slot.device && !whole.insert(slot.slot.device).second;
      });
    }
    return offers;
  }

  const Outlook& outlook_;
  ledger::Snapshot ledger_;
};

using Ends = std::vector<std::pair<base::TimePoint, std::string>>;

/// The leases with a known end, the earliest first.
Ends InOrder(const std::map<std::string, base::TimePoint>& ends) {
  Ends order;
  for (const auto& [lease, at] : ends) order.emplace_back(at, lease);
  std::ranges::sort(order);
  return order;
}

/// Simulates `ends` from `now` on until the request can be served, and removes from `ends` those
/// that have passed.
std::optional<Start> Play(const Request& request, Future& future, Ends& ends, base::TimePoint now) {
  if (auto slots = future.Reserve(request); slots.ok()) return Start{now, std::move(*slots)};
  Future last = future;
  for (const auto& [at, lease] : ends) last.End(lease);
  if (!last.Reserve(request).ok()) return std::nullopt;
  while (!ends.empty()) {
    now = std::max(now, ends.front().first);
    future.End(ends.front().second);
    ends.erase(ends.begin());
    if (auto slots = future.Reserve(request); slots.ok()) return Start{now, std::move(*slots)};
  }
  return std::nullopt;
}

}  // namespace

bool MayBeCreatedFor(const Request& request) {
  return !request.profile.empty() && request.count >= 1 && request.count <= kMostCreated &&
         request.least_memory.count == 0 && request.limits == device::Limits{};
}

Lacking ReserveSome(const Request& request, const inventory::Snapshot& inventory,
                    const ledger::Snapshot& ledger, const std::vector<share::Offer>& offers,
                    const device::DialectOf& dialect_of) {
  Lacking most{{}, request.count};
  Request fewer = request;
  int too_many = request.count;
  for (int served = 0; too_many - served > 1;) {
    fewer.count = served + (too_many - served) / 2;
    if (auto slots = Reserve(fewer, inventory, ledger, offers, dialect_of); slots.ok()) {
      served = fewer.count;
      most = {*std::move(slots), request.count - served};
    } else {
      too_many = fewer.count;
    }
  }
  return most;
}

std::optional<Start> Foresee(const Request& request, const Outlook& outlook, base::TimePoint now) {
  Future future(outlook);
  Ends ends = InOrder(outlook.ends);
  return Play(request, future, ends, now);
}

std::vector<std::optional<base::TimePoint>> ExpectedStarts(const std::vector<Planned>& queue,
                                                           const Outlook& outlook,
                                                           base::TimePoint now) {
  std::vector<std::optional<base::TimePoint>> starts;
  Future future(outlook);
  Ends ends = InOrder(outlook.ends);
  const base::TimePoint farthest = now + kFarthest;
  for (const Planned& next : queue) {
    const auto start = Play(next.request, future, ends, now);
    if (start && start->at > farthest) break;
    starts.push_back(start ? std::optional(start->at) : std::nullopt);
    if (!start && !future.IsServedAtAll(next.request))
      continue;  // it cannot be served in the current state, and blocks no other request
    if (!start) break;
    now = start->at;
    const std::string id = "planned " + std::to_string(starts.size());
    future.Begin(id, start->slots);
    if (!next.time || *next.time > kFarthest) continue;
    const std::pair end(now + LongestHeld(*next.time), id);
    ends.insert(std::lower_bound(ends.begin(), ends.end(), end), end);
  }
  starts.resize(queue.size());
  return starts;
}

std::vector<std::string> ToEnd(const Request& request, const Outlook& outlook,
                               const std::vector<std::string>& ending,
                               const std::vector<std::string>& overdue) {
  const auto served_without = [&](const std::vector<std::string>& ended) {
    Future future(outlook);
    for (const std::string& lease : ending) future.End(lease);
    for (const std::string& lease : ended) future.End(lease);
    return future.Reserve(request).ok();
  };
  std::vector<std::string> ended;
  for (auto next = overdue.begin(); !served_without(ended); ++next) {
    if (next == overdue.end()) return {};
    ended.push_back(*next);
  }
  for (std::size_t at = 0; at < ended.size();) {  // leases whose end does not help are kept
    std::vector<std::string> fewer = ended;
    fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(at));
    if (served_without(fewer)) {
      ended = std::move(fewer);
    } else {
      ++at;
    }
  }
  return ended;
}

std::vector<share::Offer> WithoutDevices(std::vector<share::Offer> offers,
                                         const std::set<std::string>& devices) {
  for (share::Offer& offer : offers) {
    for (share::OfferedSlot& slot : offer.slots) {
      if (!slot.usable || !devices.contains(slot.slot.device)) continue;
      slot.usable = false;
      slot.held = true;
      slot.reason = "reserved for requests ahead of it in the queue";
    }
  }
  return offers;
}

double DevicesHeld(const ledger::Lease& lease) {
  double held = 0;
  for (const Slot& slot : lease.slots) held += ledger::FractionOf(slot);
  return held;
}

}  // namespace penstock::node::allocate
