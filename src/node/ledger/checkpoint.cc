// The only file of the ledger that uses nlohmann::json.
#include "node/ledger/checkpoint.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/core/document.h"
#include "os/kept_file.h"

namespace penstock::node::ledger {
namespace {

using base::Code;
using base::Error;
using nlohmann::json;

constexpr int kVersion = 1;
// Per lease. The remaining processes are found again: a control group lists its own; without one,
// they are found by their ancestors and their environment.
constexpr std::size_t kMaxProcesses = 16;
constexpr std::size_t kMaxCommandBytes = 256;

json ToJson(const Slot& slot) {
  json out = {{"id", slot.id}, {"device", slot.device}};
  if (!slot.resource.empty()) out["resource"] = slot.resource;
  if (slot.shape != device::Shape{}) {
    out["sharing"] = std::string(device::ToString(slot.shape.sharing));
    out["shares"] = slot.shape.shares;
  }
  return out;
}

/// May cut a multi-byte character in two; the JSON encoder replaces it.
std::string Cut(const std::string& command) { return command.substr(0, kMaxCommandBytes); }

json ToJson(const Process& process) {
  return {{"pid", process.pid},
          {"start", process.start},
          {"user", process.user},
          {"command", Cut(process.command)}};
}

json ToJson(const Lease& lease) {
  json slots = json::array(), processes = json::array();
  for (const Slot& slot : lease.slots) slots.push_back(ToJson(slot));
  for (std::size_t i = 0; i < std::min(lease.processes.size(), kMaxProcesses); ++i)
    processes.push_back(ToJson(lease.processes[i]));
  json out = {{"id", lease.id},
              {"door", lease.allocator},
              {"slots", slots},
              {"state", lease.state == LeaseState::kHeld ? "held" : "handed"},
              {"enforcement", std::string(ToString(lease.enforcement))},
              {"since", base::FormatTime(lease.since)},
              {"processes", processes},
              {"user", lease.user},
              {"command", Cut(lease.command)},
              {"pod", lease.pod},
              {"podUid", lease.pod_uid},
              {"namespace", lease.namespace_name},
              {"container", lease.container}};
  if (!lease.labels.empty()) out["labels"] = lease.labels;
  return out;
}

device::Shape ReadShape(base::MapReader& reader) {
  const auto sharing = reader.OneOf("sharing", {"time-slicing", "mps"});
  const auto shares = reader.Int("shares", 2, INT32_MAX);
  if (!sharing || !shares) return {};
  return {*sharing == "mps" ? device::Sharing::kMps : device::Sharing::kTimeSlicing,
          static_cast<int>(*shares)};
}

std::vector<Slot> ReadSlots(const base::Value* list, base::Problems& problems) {
  std::vector<Slot> slots;
  if (list == nullptr) return slots;
  for (const base::Value& item : *list->list) {
    base::MapReader reader(item, "slot", problems);
    Slot slot{.id = reader.String("id").value_or(""),
              .device = reader.String("device").value_or("")};
    slot.resource = reader.String("resource").value_or("");
    slot.shape = ReadShape(reader);
    slots.push_back(WithShape(std::move(slot)));
    reader.Finish();
    if (slots.back().id.empty() || slots.back().device.empty())
      problems.Add(item.mark, "a slot needs an id and a device");
  }
  return slots;
}

std::vector<Process> ReadProcesses(const base::Value* list, base::Problems& problems) {
  std::vector<Process> processes;
  if (list == nullptr) return processes;
  for (const base::Value& item : *list->list) {
    base::MapReader reader(item, "process", problems);
    reader.Require("pid");
    Process process;
    process.pid = static_cast<pid_t>(reader.Int("pid", 1, INT32_MAX).value_or(0));
    process.start = static_cast<std::uint64_t>(reader.Int("start", 0, INT64_MAX).value_or(0));
    process.user = reader.String("user").value_or("");
    process.command = reader.String("command").value_or("");
    reader.Finish();
    processes.push_back(std::move(process));
  }
  return processes;
}

Lease ReadLease(const base::Value& value, base::Problems& problems) {
  base::MapReader reader(value, "lease", problems);
  for (const char* key : {"id", "door", "slots"}) reader.Require(key);
  Lease lease;
  lease.id = reader.String("id").value_or("");
  lease.allocator = reader.String("door").value_or("");
  lease.slots = ReadSlots(reader.List("slots"), problems);
  lease.state = reader.OneOf("state", {"held", "handed"}) == "held" ? LeaseState::kHeld
                                                                    : LeaseState::kAllocated;
  lease.enforcement = reader.OneOf("enforcement", {"devices", "visibility"}) == "visibility"
                          ? Enforcement::kVisibility
                          : Enforcement::kDevices;
  lease.since = base::ParseTime(reader.String("since").value_or(""));
  lease.processes = ReadProcesses(reader.List("processes"), problems);
  lease.user = reader.String("user").value_or("");
  lease.command = reader.String("command").value_or("");
  lease.pod = reader.String("pod").value_or("");
  lease.pod_uid = reader.String("podUid").value_or("");
  lease.namespace_name = reader.String("namespace").value_or("");
  lease.container = reader.String("container").value_or("");
  if (const base::Value* labels = reader.Map("labels"))
    for (const auto& label : *labels->map) lease.labels[label.key] = label.value.text;
  reader.Finish();
  return lease;
}

}  // namespace

std::string EncodeCheckpoint(const Snapshot& snapshot, std::string_view boot_id) {
  json leases = json::array();
  for (const Lease& lease : snapshot.leases) leases.push_back(ToJson(lease));
  return json({{"version", kVersion}, {"bootId", std::string(boot_id)}, {"leases", leases}})
             .dump(1, ' ', false, json::error_handler_t::replace) +
         "\n";
}

base::Result<std::vector<Lease>> DecodeCheckpoint(std::string_view text, std::string_view boot_id,
                                                  std::string_view file) {
  const auto damaged = [](const Error& error) { return Error(Code::kDataLoss, error.message()); };
  auto document = base::ParseJson(text, file, {.bytes = kMaxCheckpointBytes});
  if (!document.ok()) return damaged(document.error());
  base::Problems problems{std::string(file)};
  base::MapReader reader(*document, "", problems);
  TRY(os::CheckKeptVersion(reader, file, kVersion));
  const std::string written_in = reader.String("bootId").value_or("");
  std::vector<Lease> leases;
  if (const base::Value* list = reader.List("leases"))
    for (const base::Value& item : *list->list) leases.push_back(ReadLease(item, problems));
  reader.Finish();
  if (!problems.empty()) return damaged(problems.ToError());
  if (written_in != boot_id) return std::vector<Lease>{};
  return leases;
}

}  // namespace penstock::node::ledger
