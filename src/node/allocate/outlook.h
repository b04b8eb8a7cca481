// Predicts when a queued request can be served, from the times that holders of devices have
// declared. Pure.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/core/clock.h"
#include "node/allocate/allocate.h"

namespace penstock::node::allocate {

/// From the signal that asks a run to end (SIGTERM) to the one that ends it (SIGKILL).
inline constexpr base::Duration kKillWait = std::chrono::seconds(30);

/// The longest time that a run with a declared time holds its devices: at the end of that time it
/// is asked to end, and may take all of kKillWait.
constexpr base::Duration LongestHeld(base::Duration declared) { return declared + kKillWait; }

/// Which user a run belongs to, and how long it holds its devices. Monotonic times, so that setting
/// the clock ends no run.
struct Term {
  base::TimePoint began{};
  std::optional<base::TimePoint> ends =
      {};  ///< when it is asked to end; nothing: it may run without a limit
  std::optional<base::TimePoint> killed = {};  ///< when it is killed, after it has been asked to
                                               ///< end
  std::optional<uid_t> uid = {};               ///< nothing where it is not known
  bool operator==(const Term&) const = default;
};

/// Whether parts that the request lacks can be created for it (change::PartsOnDemand).
bool MayBeCreatedFor(const Request& request);

/// For such a request, which cannot be served: what there is of it, and how many parts it lacks.
struct Lacking {
  std::vector<ledger::Slot> slots;
  int missing = 0;
};
Lacking ReserveSome(const Request& request, const inventory::Snapshot& inventory,
                    const ledger::Snapshot& ledger, const std::vector<share::Offer>& offers,
                    const device::DialectOf& dialect_of);

/// The slots of that many parts that can be created for the request once the ledger is this one;
/// nothing where there is no room for all of them. Later calls know the slots of earlier ones.
using Create = std::function<std::optional<std::vector<ledger::Slot>>(
    const Request& request, int missing, const ledger::Snapshot& ledger)>;

/// The state from which the prediction is made.
struct Outlook {
  const inventory::Snapshot& inventory;
  const ledger::Snapshot& ledger;
  const std::vector<share::Offer>& offers;
  /// When the devices of a lease are released at the latest, by lease; a lease without a known end
  /// is missing. A time in the past means any moment now.
  std::map<std::string, base::TimePoint> ends;
  device::DialectOf dialect_of = {};  ///< see Reserve
  Create create = {};                 ///< empty: no parts are created for requests
};

/// When a request can be served, and with which slots.
struct Start {
  base::TimePoint at;
  std::vector<ledger::Slot> slots;
};

/// Returns the earliest time from `now` on at which Reserve succeeds for the request; nothing where
/// that cannot be predicted.
std::optional<Start> Foresee(const Request& request, const Outlook& outlook, base::TimePoint now);

/// A request in the queue.
struct Planned {
  Request request;
  std::optional<base::Duration> time;  ///< its declared duration; nothing: none declared
};

/// Returns when each request can be served if each waits for those before it; nothing where that is
/// not known, or later than kFarthest from now.
inline constexpr base::Duration kFarthest = std::chrono::hours(24 * 3650);
std::vector<std::optional<base::TimePoint>> ExpectedStarts(const std::vector<Planned>& queue,
                                                           const Outlook& outlook,
                                                           base::TimePoint now);

/// Returns those of the leases in `overdue`, which may be ended, that must end so that the request
/// can be served. `ending` are about to end already. Returns none where ending them would not help.
/// Earlier entries of `overdue` are chosen before later ones.
std::vector<std::string> ToEnd(const Request& request, const Outlook& outlook,
                               const std::vector<std::string>& ending,
                               const std::vector<std::string>& overdue);

/// Returns the offers with these devices marked as held by another holder.
std::vector<share::Offer> WithoutDevices(std::vector<share::Offer> offers,
                                         const std::set<std::string>& devices);

/// How many devices a lease holds; a share of a device that is shared four ways counts as a
/// quarter, and a part as a fraction of its device (ledger::FractionOf).
double DevicesHeld(const ledger::Lease& lease);

}  // namespace penstock::node::allocate
