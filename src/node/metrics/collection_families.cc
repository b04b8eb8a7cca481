// Adds the metrics about sampling: ages, failures, unsupported quantities and rejected values.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "node/metrics/families.h"

namespace penstock::node::metrics {
namespace {

using std::chrono::duration;

/// The kubelet reports the pod of an allocation some time after the allocation.
constexpr base::Duration kSettled = std::chrono::seconds(30);

void AddAges(const std::vector<DeviceRow>& devices, Exposition& page) {
  page.Family("accelerator_sample_timestamp_seconds");
  for (const DeviceRow& device : devices)
    if (device.newest != nullptr && device.newest->at != base::WallTime{})
      page.Add(device.labels, UnixTime(device.newest->at));
  page.Family("accelerator_sample_failed");
  for (const DeviceRow& device : devices)
    if (device.newest != nullptr) page.Add(device.labels, {}, !device.newest->problem.empty());
  page.Family("accelerator_collections_total");
  for (const DeviceRow& device : devices)
    if (device.newest != nullptr) page.Add(device.labels, device.newest->collections);
  page.Family("accelerator_collection_failures_total");
  for (const DeviceRow& device : devices)
    if (device.newest != nullptr) page.Add(device.labels, device.newest->failures);
  page.Family("accelerator_collection_duration_seconds");
  for (const DeviceRow& device : devices)
    if (device.newest != nullptr) page.Add(device.labels, base::Seconds(device.newest->took));
}

/// By model, because devices of one model do not support the same quantities. Without parts, which
/// have less than whole devices.
void AddUnsupported(const std::vector<DeviceRow>& devices, const device::DialectOf& dialect_of,
                    Exposition& page) {
  if (!page.Family("accelerator_unsupported")) return;
  std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> counts;
  for (const DeviceRow& device : devices) {
    const device::Dialect* dialect =
        device.newest == nullptr ? nullptr : dialect_of(device.entry->facts->vendor);
    if (dialect == nullptr || !device.entry->facts->parent.empty()) continue;
    const auto quantities = dialect->Quantities();
    for (const device::QuantityId id : device.newest->unsupported)
      if (id < quantities.size()) ++counts[{device.entry->facts->model, quantities[id].key}];
  }
  for (const auto& [what, count] : counts)
    page.Add(LabelText().Add("model", what.first).Add("quantity", what.second).text(), count);
}

void AddCollecting(const sample::Snapshot& samples, Exposition& page) {
  page.Family("accelerator_values_rejected_total");
  for (const sample::Rejected& rejected : samples.rejected)
    page.Add(LabelText()
                 .Add("device", rejected.device)
                 .Add("quantity", rejected.key)
                 .Add("reason", rejected.why)
                 .text(),
             rejected.count);
  page.Family("penstock_collection_interval_seconds");
  page.Add({}, base::Seconds(samples.interval));
  page.Family("penstock_collection_round_duration_seconds");
  for (const auto& [vendor, round] : samples.rounds)
    page.Add(LabelText().Add("vendor", vendor).text(), base::Seconds(round.took));
}

/// Only for leases that become known from reports of their allocator; others name their holder from
/// the start.
void AddAttribution(const ledger::Snapshot& ledger, base::WallTime now, Exposition& page) {
  page.Family("penstock_attribution_up");
  for (const api::Allocator& allocator : api::Allocators()) {
    if (!allocator.counts_itself) continue;
    const bool up = std::ranges::all_of(ledger.leases, [&](const ledger::Lease& lease) {
      return lease.allocator != allocator.name || !lease.pod.empty() ||
             now - lease.since < kSettled;
    });
    page.Add(LabelText().Add("door", allocator.name).text(), {}, up);
  }
}

void AddRecords(const usage::Snapshot& usage, Exposition& page) {
  page.Family("penstock_usage_records_total");
  page.Add(R"(result="written")", usage.records.written);
  page.Add(R"(result="lost")", usage.records.lost);
  page.Family("penstock_usage_write_failures_total");
  page.Add({}, usage.records.failures);
  page.Family("penstock_usage_records_pending");
  page.Add({}, usage.records.pending);
  page.Family("penstock_usage_holders_forgotten_total");
  page.Add({}, usage.forgotten);
}

}  // namespace

void AddCollection(const std::vector<DeviceRow>& devices, const Snapshots& node,
                   const device::DialectOf& dialect_of, base::WallTime now, Exposition& page) {
  AddAges(devices, page);
  AddUnsupported(devices, dialect_of, page);
  if (node.samples) AddCollecting(*node.samples, page);
  AddAttribution(*node.ledger, now, page);
  if (node.usage) AddRecords(*node.usage, page);
}

void AddUnavailable(const std::vector<Unavailable>& unavailable, Exposition& page) {
  if (!page.Family("penstock_metric_unavailable")) return;
  for (const Unavailable& one : unavailable) {
    if (one.models.empty()) page.Add(LabelText().Add("metric", one.family).text(), {}, true);
    for (const std::string& model : one.models)
      page.Add(LabelText().Add("metric", one.family).Add("model", model).text(), {}, true);
  }
}

}  // namespace penstock::node::metrics
