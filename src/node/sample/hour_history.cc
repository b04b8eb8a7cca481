#include "node/sample/hour_history.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace penstock::node::sample {

namespace {

constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
constexpr base::Duration kHour = HourHistory::kStep * HourHistory::kSteps;

/// The value of the last collection.
float LastOf(const DeviceSample& sample, HeadlineMetric metric) {
  for (const History& history : sample.history)
    if (history.name == NameOf(metric))
      return history.values.empty() ? kNone : history.values.back();
  return kNone;
}

}  // namespace

std::int64_t HourHistory::CompleteSteps(base::TimePoint now) {
  return now.time_since_epoch() / kStep;
}

HourHistory::Device* HourHistory::Find(const std::string& id, std::int64_t step) {
  const auto found = devices_.find(id);
  if (found != devices_.end()) return &found->second;
  if (devices_.size() >= kMaxDevices) return nullptr;
  Device& device = devices_[id];
  device.step = step;
  return &device;
}

/// Begins the steps up to this one. `hold`: the last values were valid until now.
void HourHistory::Advance(Device& device, std::int64_t step, bool hold) {
  if (step <= device.step) return;
  const std::int64_t first =
      std::max(device.step + 1, step - static_cast<std::int64_t>(kSteps) + 1);
  for (Line& line : device.lines) {
    if (line.means.empty()) continue;
    for (std::int64_t one = first; one <= step; ++one)
      line.means[static_cast<std::size_t>(one) % kSteps] = hold && one < step ? line.last : kNone;
    line.count = 0;
  }
  device.step = step;
}

void HourHistory::Add(const Snapshot& samples, base::TimePoint now) {
  const std::int64_t step =
      CompleteSteps(now);  // the step that is not complete has the next number
  std::erase_if(devices_, [&](const auto& entry) {
    return now - entry.second.at > kHour && samples.Find(entry.first) == nullptr;
  });
  for (const auto& [id, sample] : samples.devices) {
    if (sample->collections == 0) continue;
    Device* device = Find(id, step);
    if (device == nullptr || device->collections == sample->collections) continue;
    Advance(*device, step, now - device->at <= 2 * samples.interval);
    device->collections = sample->collections;
    device->at = now;
    for (std::size_t i = 0; i < kMetrics.size(); ++i) {
      Line& line = device->lines[i];
      line.last = LastOf(*sample, kMetrics[i]);
      if (std::isnan(line.last)) continue;
      if (line.means.empty()) line.means.assign(kSteps, kNone);
      float& mean = line.means[static_cast<std::size_t>(step) % kSteps];
      mean = line.count == 0 ? line.last
                             : mean + (line.last - mean) / static_cast<float>(line.count + 1);
      ++line.count;
    }
  }
}

std::vector<float> HourHistory::Values(std::string_view device, HeadlineMetric metric,
                                       base::TimePoint now) const {
  const auto found = devices_.find(device);
  const auto which = std::find(kMetrics.begin(), kMetrics.end(), metric) - kMetrics.begin();
  if (found == devices_.end() || which == static_cast<std::ptrdiff_t>(kMetrics.size()) ||
      found->second.lines[static_cast<std::size_t>(which)].means.empty())
    return {};
  const Device& kept = found->second;
  const Line& line = kept.lines[static_cast<std::size_t>(which)];
  const std::int64_t complete = CompleteSteps(now);
  std::vector<float> values;
  values.reserve(kSteps);
  for (std::int64_t step = complete - static_cast<std::int64_t>(kSteps); step < complete; ++step) {
    const bool in_ring =
        step <= kept.step && step > kept.step - static_cast<std::int64_t>(kSteps) && step >= 0;
    values.push_back(in_ring ? line.means[static_cast<std::size_t>(step) % kSteps] : kNone);
  }
  return values;
}

}  // namespace penstock::node::sample
