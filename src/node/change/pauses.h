// Remembers what failed, and how long it is left alone after that. Pure.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/core/clock.h"

namespace penstock::node::change {

/// By key, such as the id of a device.
class Pauses {
 public:
  /// The first pause, and how often it is doubled at most with each further failure.
  Pauses(base::Duration first, int most_doublings)
      : first_(first), most_doublings_(most_doublings) {}

  /// Returns how long the key is left alone from `now` on.
  base::Duration Add(const std::string& key, std::string why, base::TimePoint now) {
    Failure& failure = failures_[key];
    failure.why = std::move(why);
    const base::Duration pause = After(failure.times++);
    failure.until = now + pause;
    return pause;
  }

  /// The pause after so many failures before this one.
  base::Duration After(int failures) const {
    return first_ * (1 << std::min(failures, most_doublings_));
  }

  /// Why the key is left alone now; empty: it is not.
  std::string Why(const std::string& key, base::TimePoint now) const {
    const auto failed = failures_.find(key);
    return failed != failures_.end() && now < failed->second.until ? failed->second.why : "";
  }

  void Forget(const std::string& key) { failures_.erase(key); }
  void ForgetAll() { failures_.clear(); }

 private:
  struct Failure {
    std::string why;
    base::TimePoint until{};
    int times = 0;
  };
  base::Duration first_;
  int most_doublings_;
  std::map<std::string, Failure> failures_;
};

}  // namespace penstock::node::change
