// Limits how often an address may fail to authenticate. The caller passes the time.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "base/core/clock.h"

namespace penstock::protocol::http {

/// Ten failures at once, then one every six seconds, for each address. Not thread-safe.
class LoginThrottle {
 public:
  /// Returns whether a client at this address may try to authenticate.
  bool MayTry(const std::string& address, base::TimePoint now);
  void Count(const std::string& address, base::TimePoint now);

  static constexpr double kAtOnce = 10;
  static constexpr base::Duration kOneIn = std::chrono::seconds(6);
  static constexpr std::size_t kMaxAddresses = 1024;

 private:
  struct Bucket {
    double left = kAtOnce;
    base::TimePoint at;
  };
  static void Refill(Bucket& bucket, base::TimePoint now);
  void MakeRoom(base::TimePoint now);

  std::map<std::string, Bucket> buckets_;
};

}  // namespace penstock::protocol::http
