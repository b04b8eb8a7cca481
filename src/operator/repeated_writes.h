// Slows down writes that another program takes back, so that two controllers that disagree about an
// object do not write it without end.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "base/core/clock.h"

namespace penstock::cluster {

/// Of objects by their names. Three writes of the same content within ten minutes are nothing
/// unusual: a user took something back, a server was restored. Each further one waits, first a
/// second, then twice as long as the one before, at most five minutes. Other content is written at
/// once.
class RepeatedWrites {
 public:
  void Wrote(const std::string& name, std::size_t content, base::TimePoint now);

  /// Until when a write of this content waits; empty: it does not.
  std::optional<base::TimePoint> WaitsUntil(const std::string& name, std::size_t content,
                                            base::TimePoint now) const;

  /// Until when it counts as an object that another program changes: after a write that had to
  /// wait, half a minute longer than the next one would. Empty: it does not.
  std::optional<base::TimePoint> ContestedUntil(const std::string& name, base::TimePoint now) const;
  std::map<std::string, base::TimePoint> Contested(base::TimePoint now) const;  ///< by name

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
