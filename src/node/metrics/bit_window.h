// Counts of a value's bits over its samples: in how many within a window each was set, and how often each became so. Knows no quantity.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/clock.h"

namespace penstock::node::metrics {

/// On one thread. Of each device the last 4096 samples at most.
class BitWindow {
 public:
  void SetWindow(base::Duration window) { window_ = window; }

  /// A device's newest value, and when it was taken: one that was seen before counts once.
  void See(const std::string& device, base::WallTime taken, std::uint64_t bits, base::TimePoint now);

  /// In how many samples the bit was set. 0 also of a device that nothing is known of.
  std::uint64_t Count(std::string_view device, std::uint64_t bit) const;

 private:
  struct Seen {
    std::deque<std::pair<base::TimePoint, std::uint64_t>> samples;
    base::WallTime last{};
  };
  base::Duration window_ = std::chrono::minutes(5);
  std::map<std::string, Seen, std::less<>> devices_;
};

/// How often each bit was set in a sample and not in the one before it. What the first sample has is no change. On one thread.
class BitRises {
 public:
  /// As BitWindow::See.
  void See(const std::string& device, base::WallTime taken, std::uint64_t bits);

  std::uint64_t Count(std::string_view device, std::uint64_t bit) const;

 private:
  struct Seen {
    base::WallTime last{};
    std::uint64_t bits = 0;
    std::map<std::uint64_t, std::uint64_t> rises;  // by bit
  };
  std::map<std::string, Seen, std::less<>> devices_;
};

}  // namespace penstock::node::metrics
