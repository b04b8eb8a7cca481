// Queues requests that wait for devices and decides in which order they are served. Runs on the
// control executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <sys/types.h>

#include "api/config/node_config.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "node/allocate/allocate.h"

namespace penstock::node::allocate {

/// The process that waits. `start` distinguishes it from a later process with the same pid (proc(5)
/// field 22).
struct Waiter {
  uid_t uid = 0;
  pid_t pid = 0;
  std::uint64_t start = 0;
  bool operator==(const Waiter&) const = default;
};

/// A queued request.
struct Waiting {
  std::string ticket;  ///< "q-7"
  Request request;
  std::optional<base::Duration>
      time;  ///< how long it holds what it gets, as declared; nothing: without a limit
  Waiter waiter;
  std::string user;
  std::string command;
  base::WallTime since{};
  std::optional<base::TimePoint> until =
      {};               ///< when it leaves the queue at the latest; nothing: it waits indefinitely
  std::string reason;   ///< what it waits for
  bool beyond = false;  ///< at the last evaluation it asked for more than its user's limits
  /// A place kept from the previous agent, whose program has not asked again yet. Of its request
  /// only how much it asks for is known: `count` (0: not known either), `share`, `profile` and
  /// `least_memory`.
  bool absent = false;
};

using Devices = std::set<std::string>;  ///< ids

/// What the first request that waits for devices in use can count on.
struct HeadClaim {
  /// When it is served at the latest, and with which devices, where that is known.
  struct Served {
    base::TimePoint at;
    Devices devices;
  };
  std::optional<Served> served;
  bool others_end = false;  ///< runs are being ended for it: no other request gets their devices
};

/// What a user holds.
struct Holding {
  double devices = 0;    ///< in the measure of DevicesHeld (outlook.h)
  bool overdue = false;  ///< holds some of it for longer than the time limit
};

/// Serves requests in order. A request that waits for devices to be released blocks later requests
/// of the same allocator from every device that it could use, so that large requests are not
/// starved. A later request with a declared time goes ahead where it cannot delay the first one:
/// its devices are certain to be released by then, or the first one does not need them then
/// (backfill). The earliest time that the first request could count on is remembered: once that
/// time cannot be kept, no request goes ahead any more. A request that waits for a device that
/// cannot be allocated at all keeps its place and blocks no other.
///
/// Per-user limits change the order only while more than one user waits, and do not apply to root.
/// Requests beyond their user's limits come after all requests within limits, and so do all
/// requests of a user who holds something for too long. The caller bounds how many requests can
/// wait at all.
class Queue {
 public:
  struct Callbacks {
    /// Reserves and allocates for this request, without the devices in `kept_back`.
    /// kResourceExhausted: it waits for devices to be released; kUnavailable: it waits for devices
    /// that cannot be allocated to any request now. The message is the reason. Any other error ends
    /// the wait.
    std::function<base::Result<void>(const Waiting&, const Devices& kept_back)> attempt;
    /// The devices that could serve this request in any way. A request that waits for devices to be
    /// released keeps them from the requests behind it.
    std::function<Devices(const Waiting&)> could_use;
    /// Called for the first request that waits for devices to be released.
    std::function<HeadClaim(const Waiting&)> claim;
    std::function<Holding(uid_t)> held;
    /// How many devices this request asks for, in the measure of `held`.
    std::function<double(const Waiting&)> amount;
    /// Its position (from 0) or its reason changed.
    std::function<void(const Waiting&, std::size_t position)> progress;
    /// It left the queue: served, or failed (kDeadlineExceeded after its wait, kCancelled, or the
    /// attempt's error).
    std::function<void(const Waiting&, base::Status)> done;
    /// Whether what it gets is being prepared: then it stays even where it does not wait, and keeps
    /// nothing from the requests behind it. Empty: nothing ever is.
    std::function<bool(const Waiting&)> being_served = {};
  };
  /// Callbacks run on the executor and may call every method here, but must not destroy the queue.
  Queue(base::Executor& executor, Callbacks callbacks);
  ~Queue();

  static constexpr base::Duration kIndefinitely = base::Duration::max();

  /// Sets the limits, from now on.
  void Configure(const api::QueueConfig& limits);

  /// Queues a request and tries it soon, through the executor. `wait` 0: kDeadlineExceeded at once
  /// if the first try does not serve it; any other wait starts now. Returns its ticket. A request
  /// whose ticket names an absent place of the same process gets that place, unless it asks for
  /// more than the place was for; any other ticket is ignored. kResourceExhausted where its user
  /// already has as many requests waiting as the limit allows while other users wait.
  base::Result<std::string> Add(Waiting waiting, base::Duration wait);

  /// Restores the places of the previous agent, in order, with their tickets. No request behind an
  /// absent place is served until the place is taken, or dropped after `patience`. Call once,
  /// before the first Add.
  void Restore(std::vector<Waiting> places, std::uint64_t next_ticket, base::Duration patience);

  /// Removes a request from the queue; `done` is called with kCancelled. kNotFound.
  base::Status Cancel(const std::string& ticket, const std::string& why);

  /// Something changed: tries soon the requests whose turn it is. Cheap; many calls result in one
  /// try.
  void Try();

  std::vector<Waiting> List() const;     ///< in order of arrival
  std::vector<Waiting> InOrder() const;  ///< in the order in which they are served
  const Waiting* Find(const std::string& ticket) const;
  std::size_t size() const { return line_.size(); }
  std::uint64_t next_ticket() const { return next_ticket_; }

 private:
  struct Place;
  struct Front;
  using Line = std::vector<std::shared_ptr<Place>>;
  base::Status MayWait(const Waiting& waiting) const;
  std::shared_ptr<Place> TakeBack(const Waiting& waiting);
  void DropAbsent();
  Line Ordered() const;
  Devices KeptFrom(const Waiting& waiting, const Front& front) const;
  bool IsFutile(const Place& place, const Devices& kept_back) const;
  void TryAll();
  void TryPlace(const std::shared_ptr<Place>& place, Front& front);
  void TakeClaim(Place& place, Front& front, std::optional<base::TimePoint> promised);
  void Notify(Place& place, std::size_t position, const std::string& reason);
  void Remove(const std::string& ticket, const base::Status& status);

  base::Executor& executor_;
  const Callbacks callbacks_;
  api::QueueConfig limits_;
  Line line_;  // in order of arrival
  std::uint64_t next_ticket_ = 1;
  bool try_posted_ = false;
  base::TimerId drop_absent_ = 0;
  base::Lifetime lifetime_;
};

}  // namespace penstock::node::allocate
