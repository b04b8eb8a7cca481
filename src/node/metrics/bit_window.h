// Counts in how many samples each bit of a value was set, within a window or in total.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/clock.h"

namespace penstock::node::metrics {

/// Counts set bits within a sliding time window. On one thread. Keeps at most the last 4096 samples
/// per device.
class BitWindow {
 public:
  void SetWindow(base::Duration window) { window_ = window; }

  /// Adds a device's newest value and the time it was taken; a repeated sample counts once.
  void AddSample(const std::string& device, base::WallTime taken, std::uint64_t bits,
                 base::TimePoint now);

  /// In how many samples the bit was set; 0 also for an unknown device.
  std::uint64_t Count(std::string_view device, std::uint64_t bit) const;

 private:
  struct Seen {
    std::deque<std::pair<base::TimePoint, std::uint64_t>> samples;
    base::WallTime last{};
  };
  base::Duration window_ = std::chrono::minutes(5);
  std::map<std::string, Seen, std::less<>> devices_;
};

/// Counts how often each bit was set in a sample but not in the one before. The bits of the first
/// sample do not count. On one thread.
class BitRises {
 public:
  /// Same as BitWindow::AddSample.
  void AddSample(const std::string& device, base::WallTime taken, std::uint64_t bits);

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
