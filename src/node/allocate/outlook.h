// When somebody who waits can be served, read from what those who hold devices have declared. Pure.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/core/clock.h"
#include "node/allocate/allocate.h"

namespace penstock::node::allocate {

/// From the signal that asks a run to end to the one that ends it.
inline constexpr base::Duration kKillWait = std::chrono::seconds(30);

/// The longest that a run with a declared time holds its devices: when the time is over it is asked to end, and may take all of kKillWait.
constexpr base::Duration LongestHeld(base::Duration declared) { return declared + kKillWait; }

/// Whose a run is, and how long it holds its devices. Monotonic times: a clock that is set ends no run.
struct Term {
  base::TimePoint began{};
  std::optional<base::TimePoint> ends = {};    ///< then it is asked to end; nothing: it may run for as long as it likes
  std::optional<base::TimePoint> killed = {};  ///< it has been asked to end, and is killed then
  std::optional<uid_t> uid = {};               ///< nothing where that is not known
  bool operator==(const Term&) const = default;
};

/// Everything that the future is read from.
struct Outlook {
  const inventory::Snapshot& inventory;
  const ledger::Snapshot& ledger;
  const std::vector<share::Offer>& offers;
  /// When the devices of a lease come back at the latest, by lease; of one that is not here nobody knows it. A time that is past: any
  /// moment now.
  std::map<std::string, base::TimePoint> ends;
};

/// When a request can be served, and with what.
struct Start {
  base::TimePoint at;
  std::vector<ledger::Slot> slots;
};

/// The earliest time from `now` on at which Reserve gives the request something; nothing where nobody knows.
std::optional<Start> Foresee(const Request& request, const Outlook& outlook, base::TimePoint now);

/// A request in the queue.
struct Planned {
  Request request;
  std::optional<base::Duration> time;  ///< how long it says that it runs; nothing: it does not say
};

/// When each can be served if each waits for those before it; nothing where that is not known, or later than kFarthest from now.
inline constexpr base::Duration kFarthest = std::chrono::hours(24 * 3650);
std::vector<std::optional<base::TimePoint>> ExpectedStarts(const std::vector<Planned>& queue, const Outlook& outlook, base::TimePoint now);

/// Of the leases in `overdue`, which may be ended, those that must be so that the request can be served; `ending` end already. None where
/// they would end in vain. The first of `overdue` are taken before the last.
std::vector<std::string> ToEnd(const Request& request, const Outlook& outlook, const std::vector<std::string>& ending,
                               const std::vector<std::string>& overdue);

/// The offers, with these devices held for somebody else.
std::vector<share::Offer> WithoutDevices(std::vector<share::Offer> offers, const std::set<std::string>& devices);

/// How many devices a lease holds; a share of one that is cut into four is a quarter.
double DevicesHeld(const ledger::Lease& lease);

}  // namespace penstock::node::allocate
