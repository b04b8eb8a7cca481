// Adds the health history of the devices: evidence, transitions and resets.
#include <string>

#include "node/metrics/families.h"

namespace penstock::node::metrics {
namespace {

void AddRecovery(const std::vector<DeviceRow>& devices, const health::HealthStatuses& statuses,
                 Exposition& page) {
  page.Family("accelerator_relapses");
  for (const DeviceRow& device : devices) {
    const auto found = statuses.find(device.entry->facts->id);
    if (found != statuses.end())
      page.Add(device.labels, static_cast<std::uint64_t>(found->second.relapses));
  }
  page.Family("accelerator_probation_end_timestamp_seconds");
  for (const DeviceRow& device : devices) {
    const auto found = statuses.find(device.entry->facts->id);
    if (found != statuses.end() && found->second.probation_until)
      page.Add(device.labels, UnixTime(*found->second.probation_until));
  }
}

std::string LabelsOf(const health::EvidenceCount& count) {
  LabelText labels;
  labels.Add("device", count.device).Add("kind", count.kind);
  labels.Add("code", count.code < 0 ? "other" : std::to_string(count.code))
      .Add("severity", ToString(count.severity));
  return labels.Take();
}

}  // namespace

void AddHealth(const std::vector<DeviceRow>& devices, const PageInputs& inputs, Exposition& page) {
  AddRecovery(devices, inputs.health, page);
  page.Family("accelerator_health_transitions_total");
  for (const health::TransitionCount& count : inputs.transitions)
    page.Add(LabelText().Add("device", count.device).Add("state", ToString(count.to)).text(),
             count.count);
  page.Family("accelerator_resets_total");
  for (const health::ResetCount& count : inputs.resets)
    page.Add(LabelText().Add("device", count.device).Add("result", count.result).text(),
             count.count);
  page.Family("accelerator_evidence_total");
  for (const health::EvidenceCount& count : inputs.evidence) page.Add(LabelsOf(count), count.count);
  page.Family("accelerator_evidence_last_timestamp_seconds");
  for (const health::EvidenceCount& count : inputs.evidence)
    page.Add(LabelsOf(count), UnixTime(count.last));
}

}  // namespace penstock::node::metrics
