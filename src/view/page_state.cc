// Pure.
#include "view/page_state.h"

#include <utility>

#include "node/sample/headline_metrics.h"

namespace penstock::view {

namespace {

using node::sample::HeadlineMetric;

/// One item for each holder, which may have several shares of the device; those of one lease follow
/// each other.
std::vector<api::PageHolder> Combine(std::vector<api::HolderReport> holders) {
  std::vector<api::PageHolder> combined;
  for (api::HolderReport& holder : holders) {
    const bool same = !combined.empty() && !holder.lease.empty() &&
                      combined.back().holder.lease == holder.lease &&
                      combined.back().holder.device == holder.device;
    if (same) {
      ++combined.back().slots;
    } else {
      combined.push_back({std::move(holder), 1});
    }
  }
  return combined;
}

void AddValues(const node::sample::DeviceSample& sample, const device::Dialect& dialect,
               api::PageDevice& device) {
  const auto value = [&](HeadlineMetric metric) {
    return node::sample::ValueOf(metric, sample, dialect.Quantities());
  };
  device.utilization = value(HeadlineMetric::kUtilization);
  device.memory_used = value(HeadlineMetric::kMemoryUsed);
  device.power = value(HeadlineMetric::kPower);
  device.power_limit = value(HeadlineMetric::kPowerLimit);
  device.temperature = value(HeadlineMetric::kTemperature);
}

api::QueuedRun Describe(const node::allocate::Waiting& waiting, const PageQueue& queue) {
  const auto start = queue.expected_starts.find(waiting.ticket);
  return {
      .ticket = waiting.ticket,
      .user = waiting.user,
      .command = waiting.command,
      .count = waiting.request.count,
      .share = waiting.request.share,
      .model = waiting.request.model,
      .profile = waiting.request.profile,
      .least_memory = waiting.request.least_memory,
      .devices = waiting.request.devices,
      .since = base::FormatTime(waiting.since),
      .expected_start = start == queue.expected_starts.end() ? "" : base::FormatTime(start->second),
      .reason = waiting.reason};
}

}  // namespace

api::PageState MakePageState(api::Report report, const node::sample::Snapshot& samples,
                             const device::DialectOf& dialect_of, const PageQueue& queue) {
  api::PageState state{.node = std::move(report.node),
                       .version = std::move(report.version),
                       .vendors = std::move(report.vendors),
                       .conditions = std::move(report.conditions),
                       .configuration_problem = std::move(report.configuration.problem),
                       .removed = Combine(std::move(report.removed))};
  state.devices.reserve(report.devices.size());
  for (api::DeviceReport& one : report.devices) {
    api::PageDevice& device = state.devices.emplace_back();
    device.holders = Combine(std::exchange(one.holders, {}));
    one.graphics.clear();
    const auto* sample = samples.Find(one.id);
    const auto* dialect = dialect_of(one.vendor);
    if (sample != nullptr && dialect != nullptr) AddValues(*sample, *dialect, device);
    device.report = std::move(one);
  }
  state.queue.reserve(queue.runs.size());
  for (const auto& waiting : queue.runs) state.queue.push_back(Describe(waiting, queue));
  return state;
}

api::PageHistory MakePageHistory(const node::sample::Snapshot& samples,
                                 const node::sample::HourHistory& history, base::TimePoint now) {
  api::PageHistory page{.step_seconds = base::Seconds(node::sample::HourHistory::kStep)};
  for (const auto& [id, sample] : samples.devices)
    page.devices[id] = {.utilization = history.Values(id, HeadlineMetric::kUtilization, now),
                        .memory_used = history.Values(id, HeadlineMetric::kMemoryUsed, now),
                        .power = history.Values(id, HeadlineMetric::kPower, now)};
  return page;
}

}  // namespace penstock::view
