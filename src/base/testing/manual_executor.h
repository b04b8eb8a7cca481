// An executor for tests.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <mutex>
#include <utility>

#include "base/core/testing/fake_clock.h"
#include "base/executor.h"

namespace penstock::base {

/// An executor for tests: runs functions when the test says so, with a clock of its own.
class ManualExecutor final : public Executor {
 public:
  const Clock& clock() const override { return clock_; }
  void Post(std::function<void()> function) override;
  TimerId PostAfter(Duration delay, std::function<void()> function) override;
  void Cancel(TimerId timer) override;

  /// Runs one function that is ready. Returns whether there was one.
  bool RunOne();

  /// Runs the functions that are ready, and those that become ready meanwhile.
  void RunUntilIdle();

  /// Moves the clock forward, timer by timer, running each at its own time.
  void Advance(Duration by);

 private:
  FakeClock clock_;
  std::mutex mutex_;
  std::deque<std::function<void()>> ready_;
  std::map<std::pair<TimePoint, TimerId>, std::function<void()>> timers_;
  TimerId next_timer_ = 1;
};

inline void ManualExecutor::Post(std::function<void()> function) {
  std::lock_guard lock(mutex_);
  ready_.push_back(std::move(function));
}

inline TimerId ManualExecutor::PostAfter(Duration delay, std::function<void()> function) {
  std::lock_guard lock(mutex_);
  const TimerId id = next_timer_++;
  timers_.emplace(std::pair(clock_.Now() + delay, id), std::move(function));
  return id;
}

inline void ManualExecutor::Cancel(TimerId timer) {
  std::lock_guard lock(mutex_);
  std::erase_if(timers_, [timer](const auto& entry) { return entry.first.second == timer; });
}

inline bool ManualExecutor::RunOne() {
  std::function<void()> function;
  {
    std::lock_guard lock(mutex_);
    if (!ready_.empty()) {
      function = std::move(ready_.front());
      ready_.pop_front();
    } else if (!timers_.empty() && timers_.begin()->first.first <= clock_.Now()) {
      function = std::move(timers_.begin()->second);
      timers_.erase(timers_.begin());
    } else {
      return false;
    }
  }
  function();
  return true;
}

inline void ManualExecutor::RunUntilIdle() {
  while (RunOne()) {}
}

inline void ManualExecutor::Advance(Duration by) {
  RunUntilIdle();
  const TimePoint end = clock_.Now() + by;
  for (;;) {
    TimePoint next = end;
    {
      std::lock_guard lock(mutex_);
      if (!timers_.empty()) next = std::min(end, timers_.begin()->first.first);
    }
    clock_.Advance(next - clock_.Now());
    RunUntilIdle();
    if (next == end) return;
  }
}

}  // namespace penstock::base
