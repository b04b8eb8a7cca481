#include "operator/repeated_writes.h"

#include <algorithm>

namespace penstock::cluster {
namespace {

using namespace std::chrono_literals;

constexpr int kUsual = 3;
constexpr base::Duration kFirst = 1s, kMost = 5min;

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
  if (!IsContested(name, now)) return std::nullopt;
  const Write& write = writes_.at(name);
  const base::TimePoint until = write.at + DelayAfter(write.times);
  if (write.content != content || until <= now) return std::nullopt;
  return until;
}

bool RepeatedWrites::IsContested(const std::string& name, base::TimePoint now) const {
  const auto write = writes_.find(name);
  return write != writes_.end() && write->second.times >= kUsual &&
         now - write->second.at < kForgotten;
}

std::vector<std::string> RepeatedWrites::Contested(base::TimePoint now) const {
  std::vector<std::string> names;
  for (const auto& [name, write] : writes_)
    if (IsContested(name, now)) names.push_back(name);
  return names;
}

}  // namespace penstock::cluster
