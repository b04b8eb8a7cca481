#include "node/metrics/bit_window.h"

#include <algorithm>

namespace penstock::node::metrics {
namespace {

constexpr std::size_t kMaxSamples = 4096;

}  // namespace

void BitWindow::AddSample(const std::string& device, base::WallTime taken, std::uint64_t bits,
                          base::TimePoint now) {
  Seen& seen = devices_[device];
  while (!seen.samples.empty() &&
         (now - seen.samples.front().first > window_ || seen.samples.size() > kMaxSamples))
    seen.samples.pop_front();
  if (seen.last == taken) return;
  seen.last = taken;
  seen.samples.emplace_back(now, bits);
}

std::uint64_t BitWindow::Count(std::string_view device, std::uint64_t bit) const {
  const auto found = devices_.find(device);
  if (found == devices_.end()) return 0;
  const auto& samples = found->second.samples;
  return static_cast<std::uint64_t>(
      std::ranges::count_if(samples, [bit](const auto& one) { return (one.second & bit) != 0; }));
}

void BitRises::AddSample(const std::string& device, base::WallTime taken, std::uint64_t bits) {
  const auto [at, first] = devices_.try_emplace(device);
  Seen& seen = at->second;
  if (!first && seen.last == taken) return;
  seen.last = taken;
  std::uint64_t rising = first ? 0 : bits & ~seen.bits;
  for (; rising != 0; rising &= rising - 1) ++seen.rises[rising & ~(rising - 1)];
  seen.bits = bits;
}

std::uint64_t BitRises::Count(std::string_view device, std::uint64_t bit) const {
  const auto found = devices_.find(device);
  if (found == devices_.end()) return 0;
  const auto count = found->second.rises.find(bit);
  return count == found->second.rises.end() ? 0 : count->second;
}

}  // namespace penstock::node::metrics
