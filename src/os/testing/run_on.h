// Runs a function on a loop from a test's thread. For tests only.
#pragma once

#include <functional>
#include <future>

#include "os/loop.h"

namespace penstock::os {

/// Runs a function on the loop, which runs on another thread, and waits for it.
inline void RunOn(Loop& loop, const std::function<void()>& function) {
  std::promise<void> ran;
  loop.Post([&] {
    function();
    ran.set_value();
  });
  ran.get_future().wait();
}

}  // namespace penstock::os
