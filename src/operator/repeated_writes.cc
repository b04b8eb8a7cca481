#include "operator/repeated_writes.h"

#include <algorithm>

namespace penstock::cluster {
namespace {

using namespace std::chrono_literals;

constexpr int kUsual = 3;
constexpr base::Duration kFirst = 1s, kMost = 5min;
constexpr base::Duration kForgotten = 10min;  // how long a write counts
constexpr base::Duration kDoubted = 30s;      // whether a write is taken back shows within it

base::Duration DelayAfter(int times) {
  base::Duration delay = kFirst;
  for (int i = kUsual; i < times && delay < kMost; ++i) delay *= 2;
  return std::min(delay, kMost);
}

}  // namespace

void RepeatedWrites::Wrote(const std::string& name, std::size_t content, base::TimePoint now) {
  Write& write = writes_[name];
  const bool again = write.times > 0 && write.content == content && now - write.at < kForgotten;
  write = {content, again ? write.times + 1 : 1, now};
}

std::optional<base::TimePoint> RepeatedWrites::WaitsUntil(const std::string& name,
                                                          std::size_t content,
                                                          base::TimePoint now) const {
  const auto found = writes_.find(name);
  if (found == writes_.end()) return std::nullopt;
  const Write& write = found->second;
  if (write.content != content || write.times < kUsual) return std::nullopt;
  const base::TimePoint until = write.at + DelayAfter(write.times);
  if (until <= now) return std::nullopt;
  return until;
}

std::optional<base::TimePoint> RepeatedWrites::ContestedUntil(const std::string& name,
                                                              base::TimePoint now) const {
  const auto found = writes_.find(name);
  if (found == writes_.end() || found->second.times <= kUsual) return std::nullopt;
  const Write& write = found->second;
  const base::TimePoint until = write.at + DelayAfter(write.times) + kDoubted;
  if (until <= now) return std::nullopt;
  return until;
}

std::map<std::string, base::TimePoint> RepeatedWrites::Contested(base::TimePoint now) const {
  std::map<std::string, base::TimePoint> contested;
  for (const auto& [name, write] : writes_)
    if (const auto until = ContestedUntil(name, now)) contested[name] = *until;
  return contested;
}

}  // namespace penstock::cluster
