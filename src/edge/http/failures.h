// How often an address may be wrong about its credentials. Decides by the time it is given; knows nothing of credentials.
#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "base/core/clock.h"

namespace penstock::edge::http {

/// Ten failures at once, then one in six seconds, for each address. Not thread-safe.
class Failures {
 public:
  /// Whether somebody at this address may try.
  bool MayTry(const std::string& address, base::TimePoint now);
  void Count(const std::string& address, base::TimePoint now);

  static constexpr double kAtOnce = 10;
  static constexpr base::Duration kOneIn = std::chrono::seconds(6);
  static constexpr std::size_t kMostAddresses = 1024;

 private:
  struct Bucket {
    double left = kAtOnce;
    base::TimePoint at;
  };
  static void Refill(Bucket& bucket, base::TimePoint now);
  void MakeRoom(base::TimePoint now);

  std::map<std::string, Bucket> buckets_;
};

}  // namespace penstock::edge::http
