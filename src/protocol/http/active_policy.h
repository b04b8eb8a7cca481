// Holds a Protection in force, with its authenticator and its request rate. Private to
// protocol/http.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>

#include "protocol/http/server.h"

namespace penstock::protocol::http::internal {

/// Used on the server's loop.
struct ActivePolicy {
  ActivePolicy(base::Executor& loop, base::Executor& work, Protection p)
      : protection(std::move(p)) {
    if (!protection.credentials.users.empty() || !protection.credentials.tokens.empty())
      authenticator =
          std::make_unique<Authenticator>(loop, work, protection.secrets, protection.credentials);
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
  std::unique_ptr<Authenticator> authenticator;  ///< null: no credentials are needed
  double left = 0;
  base::TimePoint at{};
};

}  // namespace penstock::protocol::http::internal
