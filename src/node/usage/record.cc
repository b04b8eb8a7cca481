#include "node/usage/record.h"

#include <nlohmann/json.hpp>

#include "base/core/fields.h"

namespace penstock::node::usage {
namespace {

using nlohmann::json;

constexpr int kRecordVersion = 1;
constexpr std::size_t kMaxCommandBytes = 512;
// More than a hundred years; as nanoseconds it still fits.
constexpr std::int64_t kMaxSeconds = 4'000'000'000;
constexpr base::Names<bool, 2> kKinds{{{true, "end"}, {false, "checkpoint"}}};

/// Accepts the years 1970 to 2199: other times are damage, and beyond the range of nanoseconds.
void CheckTime(base::MapReader& reader, const char* key) {
  const std::string text = reader.String(key).value_or("");
  if (text < "1970" || text >= "2200") reader.Problem(key, "is not a time");
}

void CheckVersion(base::MapReader& reader, int version) {
  if (version > kRecordVersion) reader.Problem("version", "a newer version of the agent wrote it");
}

}  // namespace

template <typename Visit, base::Of<Record> T>
static void VisitFields(Visit& visit, T& record) {
  int version = kRecordVersion;
  visit("version", version, {.required = true, .least = 1});
  visit.Named("kind", record.ended, kKinds);
  visit("lease", record.lease, {.required = true});
  visit("door", record.allocator);
  visit("node", record.node, {.if_any = true});
  visit("namespace", record.namespace_name, {.if_any = true});
  visit("pod", record.pod, {.if_any = true});
  visit("podUid", record.pod_uid, {.if_any = true});
  visit("container", record.container, {.if_any = true});
  visit("user", record.user, {.if_any = true});
  visit("command", record.command, {.if_any = true, .longest = kMaxCommandBytes});
  visit("labels", record.labels, {.if_any = true});
  visit("device", record.device, {.required = true});
  visit("model", record.model, {.if_any = true});
  visit("slot", record.slot);
  visit("slots", record.slots, {.least = 1});
  visit("sharing", record.sharing);
  visit("shares", record.shares, {.least = 1});
  visit("since", record.since, {.required = true});
  visit("until", record.until, {.required = true});
  visit("seconds", record.seconds, {.required = true, .rounded = true, .most = kMaxSeconds});
  visit("measuredSeconds", record.measured_seconds, {.rounded = true, .most = kMaxSeconds});
  visit("busySeconds", record.busy_seconds, {.rounded = true, .most = kMaxSeconds});
  visit("energyJoules", record.energy_joules, {.rounded = true});
  visit("memoryPeakBytes", record.memory_peak);
  visit("cpuSeconds", record.cpu_seconds, {.rounded = true});
  visit("hostMemoryPeakBytes", record.host_memory_peak);
  if constexpr (Visit::kReads) {
    visit.map().Require("kind");
    CheckVersion(visit.map(), version);
    for (const char* key : {"since", "until"}) CheckTime(visit.map(), key);
  }
}

Record ToRecord(const HolderUsage& usage, base::WallTime now) {
  const ledger::Lease& lease = *usage.holder;
  Record record{.ended = usage.until.has_value(),
                .lease = lease.id,
                .allocator = lease.allocator,
                .namespace_name = lease.namespace_name,
                .pod = lease.pod,
                .pod_uid = lease.pod_uid,
                .container = lease.container,
                .user = lease.user,
                .command = lease.command,
                .labels = lease.labels,
                .device = usage.device,
                .model = usage.model,
                .slot = usage.slot,
                .slots = usage.slots,
                .sharing = std::string(device::ToString(usage.shape.sharing)),
                .shares = usage.shape.shares,
                .since = usage.since,
                .until = usage.until.value_or(now),
                .seconds = usage.seconds,
                .measured_seconds = usage.measured_seconds,
                .busy_seconds = usage.busy_seconds,
                .energy_joules = usage.energy_joules,
                .memory_peak = usage.memory_peak};
  if (usage.device == lease.slots.front().device) {
    record.cpu_seconds = usage.cpu_seconds;
    record.host_memory_peak = usage.host_memory_peak;
  }
  return record;
}

std::string EncodeRecord(const Record& record) {
  return base::JsonText(base::ToJsonObject<json>(record)) + "\n";
}

base::Result<Record> DecodeRecord(std::string_view line) {
  Record record;
  TRY(base::ReadFields(line, "record", {.unknown = base::UnknownKeys::kIgnored},
                       [&](base::StructReader& reader) { VisitFields(reader, record); }));
  return record;
}

}  // namespace penstock::node::usage
