// Decides when to ask for which quantities, and which values to accept.
#include "node/sample/device_collector.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/log.h"
#include "node/sample/headline_metrics.h"

namespace penstock::node::sample {
namespace {

using device::Pace;
using device::QuantityId;

constexpr base::Duration kSlowEvery = std::chrono::seconds(30);
constexpr base::Duration kMaxBackOff = std::chrono::minutes(2);
constexpr base::Duration kAfterAHang = std::chrono::seconds(30);  // doubled with each hang
constexpr base::Duration kMaxAfterHang = std::chrono::minutes(16);
constexpr int kMaxDoublings = 10;
constexpr int kFallsBelieved = 3;
constexpr int kMaxMissed = 3;
constexpr std::size_t kHistory = 120;

bool Less(const device::Number& a, const device::Number& b) {
  const auto* whole_a = std::get_if<std::uint64_t>(&a);
  const auto* whole_b = std::get_if<std::uint64_t>(&b);
  return whole_a != nullptr && whole_b != nullptr ? *whole_a < *whole_b
                                                  : device::ToDouble(a) < device::ToDouble(b);
}

base::Duration Doubled(base::Duration first, int times, base::Duration most) {
  return std::min(most, first * (1 << std::min(times, kMaxDoublings)));
}

}  // namespace

DeviceCollector::DeviceCollector(std::string device, const device::Dialect& dialect,
                                 Rejections& rejections, CollectionCounts& counts)
    : device_(std::move(device)),
      quantities_(dialect.Quantities()),
      rejections_(rejections),
      counts_(counts) {
  sample_.device = device_;
  sample_.vendor = dialect.vendor();
  sample_.collections = counts.collections;
  sample_.failures = counts.failures;
  for (const HeadlineMetric metric : WithHistory()) {
    sample_.history.push_back({std::string(NameOf(metric)), {}});
    remembered_.push_back(QuantitiesOf(metric, quantities_));
  }
}

void DeviceCollector::SetFacts(std::uint64_t session, std::shared_ptr<const device::Facts> facts) {
  const bool same_session = epoch_ > 0 && session == session_;
  const bool same = same_session && (facts == facts_ || *facts == *facts_);
  facts_ = std::move(facts);
  if (same) return;
  if (!same_session && !failure_outlives_session_) {
    failures_in_a_row_ = 0;
    alone_until_ = {};
  }
  session_ = session;
  ++epoch_;
  fresh_ = true;
  slow_at_ = {};
  unsupported_.assign(quantities_.size(), false);
  answered_.assign(quantities_.size(), false);
}

bool DeviceCollector::ShouldRequest(QuantityId id, bool slow_too) const {
  if (id >= quantities_.size() || unsupported_[id]) return false;
  switch (quantities_[id].pace) {
    case Pace::kFast: return true;
    case Pace::kSlow: return slow_too;
    case Pace::kOnce: return slow_too && !answered_[id];
  }
  return false;
}

std::optional<device::SampleRequest> DeviceCollector::Due(const CollectionPlan& plan,
                                                          base::TimePoint now) {
  if (now < alone_until_) return std::nullopt;
  // Half an interval early is better than half an interval late.
  const bool slow_too = now + plan.interval / 2 >= slow_at_;
  request_ = {.quantities = {}, .processes = plan.processes};
  for (const QuantityId id : plan.quantities)
    if (ShouldRequest(id, slow_too)) request_.quantities.push_back(id);
  if (request_.quantities.empty() && !request_.processes) return std::nullopt;
  if (slow_too) slow_at_ = now + std::max(plan.interval, kSlowEvery);
  fresh_ = false;
  return request_;
}

bool DeviceCollector::WasRequested(QuantityId id) const {
  return std::ranges::binary_search(request_.quantities, id);
}

void DeviceCollector::Take(device::Sample sample, const base::Timestamp& sent,
                           base::TimePoint now) {
  sample_.collections = ++counts_.collections;
  sample_.at = sent.wall;
  sample_.took = now - sent.steady;
  sample_.problem.clear();
  failures_in_a_row_ = 0;
  hung_ = failure_outlives_session_ = false;
  for (const QuantityId id : sample.unsupported)
    if (WasRequested(id)) unsupported_[id] = true;
  MarkUnreported();
  for (const device::SampleValue& value : sample.values)
    if (WasRequested(value.quantity)) Merge(value, sent.wall);
  DropVanished();
  TakeProcesses(std::move(sample.processes), sent.wall);
  Remember();
  shown_ = nullptr;
}

void DeviceCollector::Fail(const base::Error& error, const CollectionPlan& plan,
                           const base::Timestamp& sent, base::TimePoint now) {
  hung_ = error.code() == base::Code::kDeadlineExceeded;
  failure_outlives_session_ = hung_ || error.code() == base::Code::kUnavailable;
  const int before = failures_in_a_row_++;
  if (hung_) {
    alone_until_ = now + Doubled(kAfterAHang, before, kMaxAfterHang);
  } else if (before > 0) {
    alone_until_ = now + Doubled(plan.interval, before - 1, kMaxBackOff);
  }
  sample_.failures = ++counts_.failures;
  sample_.took = now - sent.steady;
  sample_.problem = error.message();
  slow_at_ = {};
  MarkUnreported();
  Remember();
  shown_ = nullptr;
}

void DeviceCollector::MarkUnreported() {
  for (Kept& kept : kept_) kept.reported = false;
}

void DeviceCollector::Merge(const device::SampleValue& value, base::WallTime at) {
  const device::Quantity& quantity = quantities_[value.quantity];
  answered_[value.quantity] = true;
  if (IsTooLarge(quantity, value.number, *facts_))
    return rejections_.Count(device_, quantity.key, kTooLarge);
  const auto place = std::lower_bound(
      kept_.begin(), kept_.end(), value, [](const Kept& kept, const device::SampleValue& wanted) {
        return std::pair(kept.latest.value.quantity, kept.latest.value.link) <
               std::pair(wanted.quantity, wanted.link);
      });
  const bool known = place != kept_.end() && place->latest.value.quantity == value.quantity &&
                     place->latest.value.link == value.link;
  if (known && quantity.counter && WentBack(*place, value))
    return rejections_.Count(device_, quantity.key, kWentBack);
  const Kept kept{.latest = {value, at}, .epoch = epoch_};
  known ? void(*place = kept) : void(kept_.insert(place, kept));
}

/// Whether a counter fell without a known reset. If several consecutive readings stay below the
/// last value, the counter was reset.
bool DeviceCollector::WentBack(Kept& kept, const device::SampleValue& value) {
  if (kept.epoch != epoch_ || !Less(value.number, kept.latest.value.number)) return false;
  kept.falls = kept.falls > 0 && !Less(value.number, kept.fallen_to) ? kept.falls + 1 : 1;
  kept.fallen_to = value.number;
  kept.reported = true;
  kept.missed = 0;
  if (kept.falls < kFallsBelieved) return true;
  base::Log(base::kInfo, "counter decreased and stayed lower; treated as a reset",
            {{"device", device_}, {"quantity", quantities_[value.quantity].key}});
  return false;
}

void DeviceCollector::DropVanished() {
  std::erase_if(kept_, [&](Kept& kept) {
    const QuantityId id = kept.latest.value.quantity;
    if (unsupported_[id]) return true;
    if (kept.reported || !WasRequested(id)) return false;
    return ++kept.missed >= kMaxMissed;
  });
}

void DeviceCollector::TakeProcesses(std::vector<device::ProcessSample> processes,
                                    base::WallTime at) {
  if (!request_.processes) return;
  for (device::ProcessSample& process : processes)
    for (const std::string_view key : RemoveImplausible(process, *facts_))
      rejections_.Count(device_, key, kTooLarge);
  sample_.processes = std::move(processes);
  sample_.processes_at = at;
}

void DeviceCollector::Remember() {
  for (std::size_t i = 0; i < remembered_.size(); ++i) {
    float value = std::numeric_limits<float>::quiet_NaN();
    for (const QuantityId id : remembered_[i]) {
      const auto found = std::ranges::find_if(kept_, [&](const Kept& kept) {
        return kept.latest.value.quantity == id && kept.latest.value.link < 0 && kept.reported;
      });
      if (found == kept_.end()) continue;
      value = static_cast<float>(device::ToDouble(found->latest.value.number) *
                                 device::BaseOf(quantities_[id].unit).factor);
      break;
    }
    std::vector<float>& values = sample_.history[i].values;
    if (values.empty() && std::isnan(value)) continue;  // a part that only its device measures
    if (values.size() == kHistory) values.erase(values.begin());
    values.push_back(value);
  }
}

void DeviceCollector::Keep(const CollectionPlan& plan) {
  std::erase_if(kept_, [&](const Kept& kept) {
    return !std::ranges::binary_search(plan.quantities, kept.latest.value.quantity);
  });
  std::erase_if(request_.quantities,
                [&](QuantityId id) { return !std::ranges::binary_search(plan.quantities, id); });
  request_.processes = request_.processes && plan.processes;
  if (!plan.processes) {
    sample_.processes.clear();
    sample_.processes_at = {};
  }
  shown_ = nullptr;
}

std::shared_ptr<const DeviceSample> DeviceCollector::Show() {
  if (shown_) return shown_;
  auto fresh = std::make_shared<DeviceSample>(sample_);
  fresh->values.reserve(kept_.size());
  for (const Kept& kept : kept_) fresh->values.push_back(kept.latest);
  for (std::size_t id = 0; id < unsupported_.size(); ++id)
    if (unsupported_[id]) fresh->unsupported.push_back(static_cast<QuantityId>(id));
  return shown_ = std::move(fresh);
}

}  // namespace penstock::node::sample
