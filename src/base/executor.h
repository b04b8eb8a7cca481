// An interface for running functions one after another, with timers.
#pragma once

#include <cstdint>
#include <functional>

#include "base/core/clock.h"

namespace penstock::base {

using TimerId = std::uint64_t;  ///< 0 is no timer

/// A queue of functions that run one at a time, in order, on one thread. Post, PostAfter and Cancel
/// may be called from any thread.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual const Clock& clock() const = 0;

  /// Runs the function soon.
  virtual void Post(std::function<void()> function) = 0;

  /// Runs the function once the delay has passed.
  virtual TimerId PostAfter(Duration delay, std::function<void()> function) = 0;

  /// Cancels a timer; does nothing if it has run already. A timer that is cancelled on the
  /// executor's own thread never runs.
  virtual void Cancel(TimerId timer) = 0;
};

}  // namespace penstock::base
