// What of the monitor outlives the agent.
#include "node/health/health.h"
#include "node/health/policy.h"

namespace penstock::node::health {

using device::Severity;

void Monitor::Recall(Memory memory) {
  remembered_drivers_ = std::move(memory.drivers);
  const base::TimePoint now = executor_.clock().Now();
  for (auto& [id, remembered] : memory.devices) {
    Tracked& tracked = devices_[id];
    for (const RememberedTrouble& one : remembered.troubles) {
      const Severity severity = Apply(options_.policy, one.kind, one.code, one.verdict.severity);
      if (severity < Severity::kDrain) continue;
      tracked.happened[{one.kind, one.code}] = {one.verdict, severity, one.at, one.proven_over};
      if (!tracked.remembered_since || one.at < *tracked.remembered_since) tracked.remembered_since = one.at;
    }
    tracked.recovery.Recall(remembered.recovery, now);
    tracked.reason = std::move(remembered.reason);
    tracked.resets = std::move(remembered.resets);
  }
  inventory_.Recall(std::move(memory.slots));
}

Memory Monitor::Remember() const {
  Memory memory{{}, driver_versions_.empty() ? remembered_drivers_ : driver_versions_, inventory_.slots()};
  const base::TimePoint now = executor_.clock().Now();
  for (const auto& [id, tracked] : devices_) {
    RememberedDevice device{{}, tracked.recovery.Remember(now), tracked.reason, ResetsOf(id)};
    for (const auto& [what, trouble] : tracked.happened)
      device.troubles.push_back({what.first, what.second, trouble.verdict, trouble.at, trouble.proven_over});
    const bool something = !device.troubles.empty() || device.recovery.unwell || device.recovery.recovered_ago || !device.resets.empty();
    if (something) memory.devices[id] = std::move(device);
  }
  return memory;
}

}  // namespace penstock::node::health
