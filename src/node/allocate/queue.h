// Who waits for devices, first come, first served. On the control executor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/executor.h"
#include "node/allocate/allocate.h"

namespace penstock::node::allocate {

/// One who waits.
struct Waiting {
  std::string ticket;  ///< "q-7"
  Request request;
  std::string user;
  std::string command;
  base::WallTime since{};
  std::string reason;  ///< what it waits for
};

/// Serves requests in order: one that could be served waits behind an earlier one of the same door that waits for devices to be let go, so
/// that large requests are not starved. Who waits for a device that nobody can be given keeps its place and holds up nobody. Bounded: at
/// most 1,000 wait.
class Queue {
 public:
  /// Tries to reserve and record; called for those whose turn it is whenever something changed.
  using Attempt = std::function<base::Result<void>(const Waiting&)>;
  struct Callbacks {
    /// Reserves and hands for this one. kResourceExhausted: it waits for devices to be let go, and those behind it with it; kUnavailable:
    /// it waits for what nobody can be given now, and those behind it go on. The message is the reason. Any other error ends the wait.
    Attempt attempt;
    /// Its place (from 0) or reason changed.
    std::function<void(const Waiting&, std::size_t position)> progress;
    /// It is out of the line: served, or failed (kDeadlineExceeded after its wait, kCancelled, or the attempt's error).
    std::function<void(const Waiting&, base::Status)> done;
  };
  /// Callbacks run on the executor and may call everything here, but not destroy the queue.
  Queue(base::Executor& executor, Callbacks callbacks);
  ~Queue();

  static constexpr std::size_t kMost = 1000;
  static constexpr base::Duration kForEver = base::Duration::max();

  /// Puts one in line and tries soon, through the executor. `wait` 0: kDeadlineExceeded at once if it is not served by the first try; any
  /// other wait begins now. Returns its ticket. kResourceExhausted where the line is full.
  base::Result<std::string> Add(Waiting waiting, base::Duration wait);

  /// Takes one out of the line: done is called with kCancelled. kNotFound.
  base::Status Cancel(const std::string& ticket, const std::string& why);

  /// Something changed: try soon the first in line, and those after it while nobody before them holds them up. Cheap; many calls make one
  /// try.
  void Try();

  std::vector<Waiting> List() const;

 private:
  struct Place;
  static bool Waits(const base::Status& tried);
  void TryAll();
  void Tell(Place& place, std::size_t position, const std::string& reason);
  void Remove(const std::string& ticket, const base::Status& status);

  base::Executor& executor_;
  const Callbacks callbacks_;
  std::vector<std::shared_ptr<Place>> line_;
  std::uint64_t next_ticket_ = 1;
  bool try_posted_ = false;
  std::shared_ptr<Queue*> self_;  // null inside once destroyed: for functions on their way
};

}  // namespace penstock::node::allocate
