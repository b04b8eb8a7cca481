// Who waits for devices, and in which order they are served. On the control executor.
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

#include "api/node_config.h"
#include "base/executor.h"
#include "node/allocate/allocate.h"

namespace penstock::node::allocate {

/// The process that waits. `start` tells it from a later one with the same pid (proc(5) field 22).
struct Waiter {
  uid_t uid = 0;
  pid_t pid = 0;
  std::uint64_t start = 0;
  bool operator==(const Waiter&) const = default;
};

/// One who waits.
struct Waiting {
  std::string ticket;  ///< "q-7"
  Request request;
  std::optional<base::Duration> time;  ///< how long it holds what it gets, as it declared; nothing: for as long as it likes
  Waiter waiter;
  std::string user;
  std::string command;
  base::WallTime since{};
  std::optional<base::TimePoint> until = {};  ///< it waits until then; nothing: for as long as it takes
  std::string reason;                         ///< what it waits for
  bool beyond = false;                        ///< it asks for more than its user's limits, by the last look
  /// A place of the agent before us whose program has not come back yet; of its request `count` (0: not even that) and `share` are known.
  bool absent = false;
};

using Devices = std::set<std::string>;  ///< ids

/// What the first that waits for devices in use can count on.
struct Claim {
  /// When it is served at the latest, and with which devices, where that is known.
  struct Served {
    base::TimePoint at;
    Devices devices;
  };
  std::optional<Served> served;
  bool others_end = false;  ///< runs are ended for it: no other request gets their devices
};

/// What a user holds.
struct Holding {
  double devices = 0;    ///< a share of one that is cut into four is a quarter
  bool overdue = false;  ///< some of it for longer than the limit of time
};

/// Serves requests in order: those that wait for devices to be let go hold up later ones of the same door for every device that they could
/// use, so that large requests are not starved. A later one that says how long it runs goes ahead where it cannot delay the first that
/// waits: its devices are certain to be back by then, or it takes devices that this one does not need then (backfill). The earliest time
/// that the first could count on is remembered: once it cannot be kept, no request goes ahead any more. One that waits for a device
/// that cannot be given to anybody keeps its place and holds up no other.
///
/// Limits for each user change the order only while more than one user waits, and are none for root: what a user asks for beyond them comes
/// after what all others ask for within theirs, and so does all that a user asks for who holds something for too long. How many can wait at
/// all is bounded by who adds them.
class Queue {
 public:
  struct Callbacks {
    /// Reserves and hands for this one, none of the devices that are kept back among it. kResourceExhausted: it waits for devices to be let
    /// go; kUnavailable: it waits for what nobody can be given now. The message is the reason. Any other error ends the wait.
    std::function<base::Result<void>(const Waiting&, const Devices& kept_back)> attempt;
    /// The devices that this one could use, in whatever way it is served: who waits for devices to be let go keeps them from those behind.
    std::function<Devices(const Waiting&)> could_use;
    /// Of the first that waits for devices to be let go.
    std::function<Claim(const Waiting&)> claim;
    std::function<Holding(uid_t)> held;
    /// Its place (from 0) or reason changed.
    std::function<void(const Waiting&, std::size_t position)> progress;
    /// It is out of the line: served, or failed (kDeadlineExceeded after its wait, kCancelled, or the attempt's error).
    std::function<void(const Waiting&, base::Status)> done;
  };
  /// Callbacks run on the executor and may call everything here, but not destroy the queue.
  Queue(base::Executor& executor, Callbacks callbacks);
  ~Queue();

  static constexpr base::Duration kForEver = base::Duration::max();

  /// Limits from now on.
  void Configure(const api::QueueConfig& limits);

  /// Puts one in line and tries soon, through the executor. `wait` 0: kDeadlineExceeded at once if it is not served by the first try; any
  /// other wait begins now. Returns its ticket. One whose ticket names an absent place of the same process gets that, unless it asks for
  /// more than that place was for; any other ticket counts for nothing. kResourceExhausted where its user has as many waiting as the limit
  /// says, while others wait.
  base::Result<std::string> Add(Waiting waiting, base::Duration wait);

  /// Puts places of the agent before us in line, in order, with their tickets. Nobody behind an absent place is served until it is taken,
  /// or dropped after `patience`. Once, before the first Add.
  void Restore(std::vector<Waiting> places, std::uint64_t next_ticket, base::Duration patience);

  /// Takes one out of the line: done is called with kCancelled. kNotFound.
  base::Status Cancel(const std::string& ticket, const std::string& why);

  /// Something changed: try soon those whose turn it is. Cheap; many calls make one try.
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
  bool InVain(const Place& place, const Devices& kept_back) const;
  void TryAll();
  void TryPlace(const std::shared_ptr<Place>& place, Front& front);
  void TakeClaim(Place& place, Front& front, std::optional<base::TimePoint> promised);
  void Tell(Place& place, std::size_t position, const std::string& reason);
  void Remove(const std::string& ticket, const base::Status& status);

  base::Executor& executor_;
  const Callbacks callbacks_;
  api::QueueConfig limits_;
  Line line_;  // in order of arrival
  std::uint64_t next_ticket_ = 1;
  bool try_posted_ = false;
  base::TimerId drop_absent_ = 0;
  std::shared_ptr<Queue*> self_;  // null inside once destroyed: for functions on their way
};

}  // namespace penstock::node::allocate
