#include "node/usage/record.h"

#include <cmath>

#include <nlohmann/json.hpp>

namespace penstock::node::usage {
namespace {

using base::Code;
using base::Error;
using nlohmann::json;

constexpr int kVersion = 1;
constexpr std::size_t kMaxCommandBytes = 512;
constexpr double kMaxNumber = 1e300;
// More than a hundred years; as nanoseconds it still fits.
constexpr double kMaxSeconds = 4e9;

/// Thousandths are precise enough for readers.
double Rounded(double value) { return std::round(value * 1000) / 1000; }

void PutText(json& out, const char* key, const std::string& text) {
  if (!text.empty()) out[key] = text;
}

std::string Text(base::MapReader& reader, const char* key) {
  return reader.String(key).value_or("");
}
double Number(base::MapReader& reader, const char* key) {
  return reader.Number(key, 0, kMaxNumber).value_or(0);
}

double Seconds(base::MapReader& reader, const char* key) {
  return reader.Number(key, 0, kMaxSeconds).value_or(0);
}

/// Accepts the years 1970 to 2199: other times are damage, and beyond the range of nanoseconds.
base::WallTime Time(base::MapReader& reader, const char* key) {
  const std::string text = Text(reader, key);
  if (text >= "1970" && text < "2200") return base::ParseTime(text);
  reader.Problem(key, "is not a time");
  return {};
}

std::uint64_t Count(base::MapReader& reader, const char* key) {
  return static_cast<std::uint64_t>(reader.Int(key, 0, INT64_MAX).value_or(0));
}

void ReadHolder(base::MapReader& reader, Record& record) {
  record.lease = Text(reader, "lease");
  record.allocator = Text(reader, "door");
  record.namespace_name = Text(reader, "namespace");
  record.pod = Text(reader, "pod");
  record.pod_uid = Text(reader, "podUid");
  record.container = Text(reader, "container");
  record.user = Text(reader, "user");
  record.command = Text(reader, "command");
  if (const base::Value* labels = reader.Map("labels"))
    for (const auto& label : *labels->map) record.labels[label.key] = label.value.text;
}

void ReadDevice(base::MapReader& reader, Record& record) {
  record.device = Text(reader, "device");
  record.model = Text(reader, "model");
  record.slot = Text(reader, "slot");
  record.slots = static_cast<int>(reader.Int("slots", 1, INT32_MAX).value_or(1));
  record.sharing = reader.String("sharing").value_or("none");
  record.shares = static_cast<int>(reader.Int("shares", 1, INT32_MAX).value_or(1));
}

void ReadUse(base::MapReader& reader, Record& record) {
  record.since = Time(reader, "since");
  record.until = Time(reader, "until");
  record.seconds = Seconds(reader, "seconds");
  record.measured_seconds = Seconds(reader, "measuredSeconds");
  record.busy_seconds = Seconds(reader, "busySeconds");
  record.energy_joules = Number(reader, "energyJoules");
  record.memory_peak = {Count(reader, "memoryPeakBytes")};
  record.cpu_seconds = reader.Number("cpuSeconds", 0, kMaxNumber);
  if (reader.Has("hostMemoryPeakBytes"))
    record.host_memory_peak = base::Bytes{Count(reader, "hostMemoryPeakBytes")};
}

}  // namespace

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
  json out = {{"version", kVersion},
              {"kind", record.ended ? "end" : "checkpoint"},
              {"lease", record.lease},
              {"door", record.allocator},
              {"device", record.device},
              {"slot", record.slot},
              {"slots", record.slots},
              {"sharing", record.sharing},
              {"shares", record.shares},
              {"since", base::FormatTime(record.since)},
              {"until", base::FormatTime(record.until)},
              {"seconds", Rounded(record.seconds)},
              {"measuredSeconds", Rounded(record.measured_seconds)},
              {"busySeconds", Rounded(record.busy_seconds)},
              {"energyJoules", Rounded(record.energy_joules)},
              {"memoryPeakBytes", record.memory_peak.count}};
  PutText(out, "node", record.node);
  PutText(out, "namespace", record.namespace_name);
  PutText(out, "pod", record.pod);
  PutText(out, "podUid", record.pod_uid);
  PutText(out, "container", record.container);
  PutText(out, "user", record.user);
  PutText(out, "command", record.command.substr(0, kMaxCommandBytes));
  PutText(out, "model", record.model);
  if (!record.labels.empty()) out["labels"] = record.labels;
  if (record.cpu_seconds) out["cpuSeconds"] = Rounded(*record.cpu_seconds);
  if (record.host_memory_peak) out["hostMemoryPeakBytes"] = record.host_memory_peak->count;
  return out.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

base::Result<Record> DecodeRecord(std::string_view line) {
  const auto damaged = [](const Error& error) { return Error(Code::kDataLoss, error.message()); };
  const auto document = base::ParseJson(line, "record");
  if (!document.ok()) return damaged(document.error());
  if (document->kind != base::Value::Kind::kMap)
    return Error(Code::kDataLoss, "record: is not an object");
  base::Problems problems("record");
  base::MapReader reader(*document, "", problems);
  for (const char* key : {"version", "kind", "lease", "device", "since", "until", "seconds"})
    reader.Require(key);
  Record record;
  if (reader.Int("version", 1, INT32_MAX).value_or(kVersion) > kVersion)
    return Error(Code::kDataLoss, "record: a newer version of the agent wrote it");
  record.ended = reader.OneOf("kind", {"end", "checkpoint"}) == "end";
  record.node = Text(reader, "node");
  ReadHolder(reader, record);
  ReadDevice(reader, record);
  ReadUse(reader, record);
  if (!problems.empty()) return damaged(problems.ToError());
  return record;
}

}  // namespace penstock::node::usage
