// An interface for running functions one after another, with timers.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>

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

/// An executor for tests: runs functions when the test says so, with a clock of its own.
class ManualExecutor final : public Executor {
 public:
  const Clock& clock() const override { return clock_; }
  void Post(std::function<void()> function) override;
  TimerId PostAfter(Duration delay, std::function<void()> function) override;
  void Cancel(TimerId timer) override;

  /// Runs the functions that are ready, and those that become ready meanwhile.
  void RunUntilIdle();

  /// Moves the clock forward, timer by timer, running each at its own time.
  void Advance(Duration by);

 private:
  bool RunOne();

  FakeClock clock_;
  std::mutex mutex_;
  std::deque<std::function<void()>> ready_;
  std::map<std::pair<TimePoint, TimerId>, std::function<void()>> timers_;
  TimerId next_timer_ = 1;
};

}  // namespace penstock::base
