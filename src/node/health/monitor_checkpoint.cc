// Saves and restores the part of the monitor's state that outlives the agent.
#include "node/health/monitor.h"
#include "node/health/policy.h"

namespace penstock::node::health {

using device::Severity;

void Monitor::Recall(HealthCheckpoint checkpoint) {
  drivers_ = std::move(checkpoint.drivers);
  const base::TimePoint now = executor_.clock().Now();
  for (auto& [id, remembered] : checkpoint.devices) {
    Tracked& tracked = devices_[id];
    for (const RememberedFault& one : remembered.faults) {
      const Severity severity = Apply(options_.policy, one.kind, one.code, one.verdict.severity);
      if (severity < Severity::kDrain) continue;
      tracked.latched[{one.kind, one.code}] = {one.verdict, severity, one.at, one.proven_over,
                                               false};
      if (!tracked.remembered_since || one.at < *tracked.remembered_since)
        tracked.remembered_since = one.at;
    }
    tracked.recovery.Recall(remembered.recovery, now);
    tracked.reason = std::move(remembered.reason);
    tracked.resets = std::move(remembered.resets);
    tracked.before = std::move(remembered.before);
  }
  kernel_log_ = checkpoint.kernel_log;
  inventory_.Recall(std::move(checkpoint.occupancy));
}

void Monitor::SetKernelLog(std::optional<std::uint64_t> record) {
  if (std::exchange(kernel_log_, record) != record) Changed();
}

HealthCheckpoint Monitor::Remember() const {
  HealthCheckpoint checkpoint{.devices = {},
                              .drivers = drivers_,
                              .occupancy = inventory_.occupancy(),
                              .this_boot = true,
                              .kernel_log = kernel_log_};
  const base::TimePoint now = executor_.clock().Now();
  for (const auto& [id, tracked] : devices_) {
    RememberedDevice device{
        {}, tracked.recovery.Remember(now), tracked.reason, ResetsOf(id), tracked.before};
    for (const auto& [what, fault] : tracked.latched)
      device.faults.push_back(
          {what.first, what.second, fault.verdict, fault.at, fault.proven_over});
    const bool something = !device.faults.empty() || device.recovery.unhealthy ||
                           device.recovery.recovered_ago || !device.resets.empty();
    if (something) checkpoint.devices[id] = std::move(device);
  }
  return checkpoint;
}

}  // namespace penstock::node::health
