// What the page tells of health. Judges nothing.
#include <array>
#include <map>
#include <string>

#include "node/metrics/families.h"

namespace penstock::node::metrics {
namespace {

using device::HealthState;
using Type = Exposition::Type;

constexpr std::array kStates = {HealthState::kHealthy, HealthState::kUnhealthy, HealthState::kUnknown, HealthState::kGone};

void AddStates(const std::vector<Device>& devices, Exposition& page) {
  page.Family("accelerator_healthy", Type::kGauge, "Whether an accelerator can be used: 1, or 0 whatever the reason.");
  for (const Device& device : devices) page.Add(device.labels, std::uint64_t{device.entry->health.state == HealthState::kHealthy});

  page.Family("accelerator_health_state", Type::kGauge, "State of health: 1 for the state that an accelerator is in, 0 for the others.");
  for (const Device& device : devices) {
    for (const HealthState state : kStates)
      page.Add(Labels(device.labels).Add("state", ToString(state)), std::uint64_t{device.entry->health.state == state});
  }
}

void AddWayBack(const std::vector<Device>& devices, const health::Statuses& statuses, Exposition& page) {
  page.Family("accelerator_relapses", Type::kGauge, "How often an accelerator became unwell again soon after it was well.");
  for (const Device& device : devices) {
    const auto found = statuses.find(device.entry->facts->id);
    if (found != statuses.end()) page.Add(device.labels, static_cast<std::uint64_t>(found->second.relapses));
  }
  page.Family("accelerator_probation_end_timestamp_seconds", Type::kGauge,
              "When an accelerator that is on probation will be used again if it looks well until then, in Unix time.");
  for (const Device& device : devices) {
    const auto found = statuses.find(device.entry->facts->id);
    if (found == statuses.end() || !found->second.probation_until) continue;
    page.Add(device.labels, std::chrono::duration<double>(found->second.probation_until->time_since_epoch()).count());
  }
}

void AddCounts(const Figures& figures, Exposition& page) {
  page.Family("accelerator_health_transitions_total", Type::kCounter, "How often an accelerator came into a state of health.");
  for (const health::TransitionCount& count : figures.transitions)
    page.Add(Labels().Add("device", count.device).Add("state", ToString(count.to)), count.count);

  page.Family("accelerator_resets_total", Type::kCounter, "How often an accelerator was reset, or was to be, by what became of it.");
  for (const health::ResetCount& count : figures.resets)
    page.Add(Labels().Add("device", count.device).Add("result", count.result), count.count);

  page.Family("accelerator_evidence_total", Type::kCounter,
              "What was heard about the health of an accelerator, by the vendor's kind and code.");
  for (const health::EvidenceCount& count : figures.evidence) {
    Labels labels;
    labels.Add("device", count.device).Add("kind", count.kind);
    labels.Add("code", count.code < 0 ? "other" : std::to_string(count.code)).Add("severity", ToString(count.severity));
    page.Add(labels, count.count);
  }
}

}  // namespace

void AddHealth(const std::vector<Device>& devices, const Figures& figures, Exposition& page) {
  AddStates(devices, page);
  AddWayBack(devices, figures.health, page);
  AddCounts(figures, page);
}

}  // namespace penstock::node::metrics
