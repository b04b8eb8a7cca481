// Keeps a bucket of tries for each address, which time refills.
#include "protocol/http/login_throttle.h"

#include <algorithm>

namespace penstock::protocol::http {

void LoginThrottle::Refill(Bucket& bucket, base::TimePoint now) {
  const std::chrono::duration<double> passed = now - bucket.at;
  bucket.left = std::min(kAtOnce, bucket.left + passed / kOneIn);
  bucket.at = now;
}

bool LoginThrottle::MayTry(const std::string& address, base::TimePoint now) {
  const auto found = buckets_.find(address);
  if (found == buckets_.end()) return true;
  Refill(found->second, now);
  return found->second.left >= 1;
}

void LoginThrottle::Count(const std::string& address, base::TimePoint now) {
  if (!buckets_.contains(address)) {
    MakeRoom(now);
    buckets_[address].at = now;
  }
  Bucket& bucket = buckets_[address];
  Refill(bucket, now);
  bucket.left = std::max(0.0, bucket.left - 1);
}

/// Removes buckets that are full again; if all are in use, the one with the fewest failures.
void LoginThrottle::MakeRoom(base::TimePoint now) {
  if (buckets_.size() < kMaxAddresses) return;
  for (auto& [address, bucket] : buckets_) Refill(bucket, now);
  std::erase_if(buckets_, [](const auto& entry) { return entry.second.left >= kAtOnce; });
  if (buckets_.size() < kMaxAddresses) return;
  buckets_.erase(std::ranges::max_element(
      buckets_, [](const auto& a, const auto& b) { return a.second.left < b.second.left; }));
}

}  // namespace penstock::protocol::http
