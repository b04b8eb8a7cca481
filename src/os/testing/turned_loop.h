// A loop whose time moves only when a test advances it. For tests only.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include "base/core/clock.h"
#include "base/core/testing/fake_clock.h"
#include "os/loop.h"
#include "os/testing/run_on.h"

namespace penstock::os {

/// Descriptors and posted functions work as in any loop, on a thread of its own. Timers use a clock
/// that only Advance moves, so that no deadline passes because the machine was busy. Call all
/// functions from the test's thread.
class TurnedLoop {
 public:
  explicit TurnedLoop(std::string name) : loop_(std::move(name), clock_) {}

  void Start() { loop_.Start(); }
  void Stop() { loop_.Stop(); }
  Loop& loop() { return loop_; }
  const base::FakeClock& clock() const { return clock_; }

  /// Runs a function on the loop and waits for it.
  void Run(const std::function<void()>& function) { RunOn(loop_, function); }

  /// Returns after everything that was due, posted or readable has run, including what it posted.
  void Settle() {
    for (int round = 0; round < 100; ++round) Run([] {});  // a reader may read in several pieces
  }

  /// Runs everything that is due, then advances the clock by the whole duration; timers that became
  /// due have run when it returns.
  void Advance(base::Duration by) {
    Settle();
    Run([&] { clock_.Advance(by); });
    Settle();
  }

  /// Advances the clock in steps until `holds` returns true, for conditions that also depend on
  /// other processes and threads; false after a minute.
  bool AdvanceUntil(base::Duration step, const std::function<bool()>& holds) {
    const auto late = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!holds()) {
      if (std::chrono::steady_clock::now() > late) return false;
      Advance(step);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return true;
  }

 private:
  base::FakeClock clock_;
  Loop loop_;
};

}  // namespace penstock::os
