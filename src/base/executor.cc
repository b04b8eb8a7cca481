// The executor for tests.
#include "base/executor.h"

namespace penstock::base {

void ManualExecutor::Post(std::function<void()> function) {
  std::lock_guard lock(mutex_);
  ready_.push_back(std::move(function));
}

TimerId ManualExecutor::PostAfter(Duration delay, std::function<void()> function) {
  std::lock_guard lock(mutex_);
  const TimerId id = next_timer_++;
  timers_.emplace(std::pair(clock_.Now() + delay, id), std::move(function));
  return id;
}

void ManualExecutor::Cancel(TimerId timer) {
  std::lock_guard lock(mutex_);
  std::erase_if(timers_, [timer](const auto& entry) { return entry.first.second == timer; });
}

bool ManualExecutor::RunOne() {
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

void ManualExecutor::RunUntilIdle() {
  while (RunOne()) {}
}

void ManualExecutor::Advance(Duration by) {
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
