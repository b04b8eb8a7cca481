// Slows down writes that another program takes back, so that two controllers that disagree about an
// object do not write it without end.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/core/clock.h"

namespace penstock::cluster {

/// Of objects by their names. Three writes of the same content within ten minutes are nothing
/// unusual: a user took something back, a server was restored. Each further one waits, first a
/// second, then twice as long as the one before, at most five minutes. Other content is written at
/// once.
class RepeatedWrites {
 public:
  /// How long a write counts.
  static constexpr base::Duration kForgotten = std::chrono::minutes(10);

  void Wrote(const std::string& name, std::size_t content, base::TimePoint now);

  /// Until when a write of this content waits; empty: it does not.
  std::optional<base::TimePoint> WaitsUntil(const std::string& name, std::size_t content,
                                            base::TimePoint now) const;

  /// Whether its last write had to wait, or the next one would.
  bool IsContested(const std::string& name, base::TimePoint now) const;
  std::vector<std::string> Contested(base::TimePoint now) const;

  void Forget(const std::string& name) { writes_.erase(name); }

 private:
  struct Write {
    std::size_t content = 0;
    int times = 0;
    base::TimePoint at;
  };
  std::map<std::string, Write> writes_;
};

}  // namespace penstock::cluster
