// Waits in tests for conditions that other threads or processes bring about.
#pragma once

#include <chrono>
#include <functional>
#include <thread>

namespace penstock::os {

/// Calls `holds` until it returns true; false after a minute. Blocks.
inline bool Eventually(const std::function<bool()>& holds) {
  const auto late = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > late) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace penstock::os
