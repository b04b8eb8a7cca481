// A protection at work: its guard and its count of requests; private to this room.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "edge/http/server.h"

namespace penstock::edge::http::internal {

/// On the server's loop.
struct Shield {
  Shield(base::Executor& loop, base::Executor& work, Protection p) : protection(std::move(p)) {
    if (!protection.credentials.users.empty() || !protection.credentials.tokens.empty())
      guard = std::make_unique<Guard>(loop, work, protection.secrets, protection.credentials);
    if (protection.rate) left = protection.rate->burst;
  }

  /// Whether one more request is within the rate.
  bool Admits(base::TimePoint now) {
    if (!protection.rate || protection.rate->interval <= base::Duration::zero()) return true;
    const std::chrono::duration<double> passed = now - at;
    left = std::min(protection.rate->burst, left + passed / protection.rate->interval);
    at = now;
    if (left < 1) return false;
    left -= 1;
    return true;
  }

  const Protection protection;
  std::unique_ptr<Guard> guard;  ///< null: nobody needs credentials
  double left = 0;
  base::TimePoint at{};
};

}  // namespace penstock::edge::http::internal
