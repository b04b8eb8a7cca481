#include "node/health/checkpoint.h"

#include <nlohmann/json.hpp>

#include "base/core/document.h"
#include "os/kept_file.h"

namespace penstock::node::health {
namespace {

using base::Code;
using base::Error;
using nlohmann::json;

constexpr int kVersion = 1;
constexpr std::int64_t kMaxMilliseconds = std::int64_t{1} << 40;

std::int64_t Milliseconds(base::Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
}

json ToJson(const RememberedFault& fault) {
  return {{"kind", fault.kind},
          {"code", fault.code},
          {"severity", std::string(ToString(fault.verdict.severity))},
          {"reason", fault.verdict.reason},
          {"silences", fault.verdict.silences},
          {"at", base::FormatTime(fault.at)},
          {"over", fault.proven_over}};
}

json ToJson(const RememberedDevice& device, base::WallTime now) {
  json faults = json::array(), resets = json::array();
  for (const RememberedFault& fault : device.faults) faults.push_back(ToJson(fault));
  for (const base::WallTime reset : device.resets) resets.push_back(base::FormatTime(reset));
  json to = {{"troubles", faults},
             {"unwell", device.recovery.unhealthy},
             {"reason", device.reason},
             {"relapses", device.recovery.relapses},
             {"probationPassedMs", Milliseconds(device.recovery.passed)},
             {"resets", resets}};
  if (device.recovery.recovered_ago)
    to["recovered"] = base::FormatTime(
        now - std::chrono::duration_cast<base::WallTime::duration>(*device.recovery.recovered_ago));
  return to;
}

RememberedFault ReadFault(const base::Value& value, base::Problems& problems) {
  using enum device::Severity;
  base::MapReader reader(value, "trouble", problems);
  for (const char* key : {"kind", "code", "severity"}) reader.Require(key);
  RememberedFault fault;
  fault.kind = reader.String("kind").value_or("");
  fault.code = reader.Int("code", INT64_MIN, INT64_MAX).value_or(0);
  const std::string severity =
      reader.OneOf("severity", {"ignore", "warn", "drain", "reset", "gone"}).value_or("");
  for (const device::Severity one : {kIgnore, kWarn, kDrain, kReset, kGone})
    if (severity == ToString(one)) fault.verdict.severity = one;
  fault.verdict.reason = reader.String("reason").value_or("");
  fault.verdict.silences = reader.Bool("silences").value_or(false);
  fault.at = base::ParseTime(reader.String("at").value_or(""));
  fault.proven_over = reader.Bool("over").value_or(false);
  reader.Finish();
  return fault;
}

RememberedDevice ReadDevice(const base::Value& value, base::WallTime now,
                            base::Problems& problems) {
  base::MapReader reader(value, "device", problems);
  RememberedDevice device;
  if (const base::Value* list = reader.List("troubles"))
    for (const base::Value& item : *list->list) device.faults.push_back(ReadFault(item, problems));
  device.recovery.unhealthy = reader.Bool("unwell").value_or(false);
  device.reason = reader.String("reason").value_or("");
  device.recovery.relapses = static_cast<int>(reader.Int("relapses", 0, INT32_MAX).value_or(0));
  device.recovery.passed =
      std::chrono::milliseconds(reader.Int("probationPassedMs", 0, kMaxMilliseconds).value_or(0));
  for (const std::string& text : reader.Strings("resets").value_or(std::vector<std::string>{}))
    device.resets.push_back(base::ParseTime(text));
  // The clock may have been set back: an age is never negative.
  if (const auto text = reader.String("recovered"))
    device.recovery.recovered_ago =
        std::max(base::Duration(now - base::ParseTime(*text)), base::Duration(0));
  reader.Finish();
  return device;
}

inventory::PciOccupant ReadOccupant(const base::Value& value, base::Problems& problems) {
  base::MapReader reader(value, "slot", problems);
  reader.Require("id");
  inventory::PciOccupant occupant{reader.String("id").value_or(""),
                                  reader.String("serial").value_or("")};
  reader.Finish();
  return occupant;
}

HealthCheckpoint ReadState(base::MapReader& reader, base::WallTime now, base::Problems& problems) {
  HealthCheckpoint checkpoint;
  if (const base::Value* devices = reader.Map("devices"))
    for (const auto& [id, mark, value] : *devices->map)
      checkpoint.devices[id] = ReadDevice(value, now, problems);
  if (const base::Value* occupancy = reader.Map("slots"))
    for (const auto& [address, mark, value] : *occupancy->map)
      checkpoint.occupancy[address] = ReadOccupant(value, problems);
  if (const base::Value* drivers = reader.Map("drivers"))
    for (const auto& [vendor, mark, value] : *drivers->map)
      checkpoint.drivers[vendor] = {value.text, ""};
  return checkpoint;
}

std::string Text(const json& document) {
  return document.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

ResetCounters ReadCounters(const base::Value& value, base::Problems& problems) {
  base::MapReader reader(value, "counters", problems);
  ResetCounters counters;
  if (!value.map) return counters;
  for (const auto& entry : *value.map)
    counters[entry.key] = reader.Int(entry.key, 0, INT64_MAX).value_or(0);
  return counters;
}

Error Damaged(const Error& error) { return {Code::kDataLoss, error.message()}; }

/// A boot ends all that a reset ends, and more. Relapses are kept: a boot does not repair a bad
/// board.
void ForgetFaults(HealthCheckpoint& checkpoint) {
  checkpoint.drivers.clear();
  for (auto& [id, device] : checkpoint.devices) {
    device.faults.clear();
    device.reason.clear();
    if (device.recovery.unhealthy) device.recovery.recovered_ago = base::Duration(0);
    device.recovery.unhealthy = false;
  }
}

}  // namespace

std::string EncodeHealthCheckpoint(const HealthCheckpoint& checkpoint, std::string_view boot_id,
                                   base::WallTime now) {
  json devices = json::object(), occupancy = json::object(), drivers = json::object();
  for (const auto& [id, device] : checkpoint.devices) devices[id] = ToJson(device, now);
  for (const auto& [address, occupant] : checkpoint.occupancy)
    occupancy[address] = {{"id", occupant.id}, {"serial", occupant.serial}};
  for (const auto& [vendor, driver] : checkpoint.drivers) drivers[vendor] = driver.version;
  return Text({{"version", kVersion},
               {"bootId", std::string(boot_id)},
               {"devices", devices},
               {"slots", occupancy},
               {"drivers", drivers}});
}

std::string EncodeMarks(const HealthCheckpoint& checkpoint, std::string_view boot_id) {
  json counters = json::object(), instances = json::object();
  for (const auto& [id, device] : checkpoint.devices)
    if (!device.before.empty()) counters[id] = device.before;
  for (const auto& [vendor, driver] : checkpoint.drivers) instances[vendor] = driver.instance;
  json marks = {{"version", kVersion},
                {"bootId", std::string(boot_id)},
                {"counters", counters},
                {"driverInstances", instances}};
  if (checkpoint.kernel_log) marks["kernelLog"] = *checkpoint.kernel_log;
  return Text(marks);
}

base::Result<HealthCheckpoint> DecodeHealthCheckpoint(std::string_view text,
                                                      std::string_view boot_id,
                                                      std::string_view file, base::WallTime now) {
  auto document = base::ParseJson(text, file);
  if (!document.ok()) return Damaged(document.error());
  base::Problems problems{std::string(file)};
  base::MapReader reader(*document, "", problems);
  TRY(os::CheckKeptVersion(reader, file, kVersion));
  const std::string written_in = reader.String("bootId").value_or("");
  HealthCheckpoint checkpoint = ReadState(reader, now, problems);
  reader.Finish();
  if (!problems.empty()) return Damaged(problems.ToError());
  checkpoint.this_boot = written_in == boot_id;
  if (!checkpoint.this_boot) ForgetFaults(checkpoint);
  return checkpoint;
}

base::Result<HealthMarks> DecodeMarks(std::string_view text, std::string_view boot_id,
                                      std::string_view file) {
  auto document = base::ParseJson(text, file);
  if (!document.ok()) return Damaged(document.error());
  base::Problems problems{std::string(file)};
  base::MapReader reader(*document, "", problems);
  TRY(os::CheckKeptVersion(reader, file, kVersion));
  const std::string written_in = reader.String("bootId").value_or("");
  HealthMarks marks;
  if (const base::Value* devices = reader.Map("counters"))
    for (const auto& [id, mark, value] : *devices->map)
      marks.counters[id] = ReadCounters(value, problems);
  if (const base::Value* drivers = reader.Map("driverInstances"))
    for (const auto& [vendor, mark, value] : *drivers->map) marks.instances[vendor] = value.text;
  if (const auto record = reader.Int("kernelLog", 0, INT64_MAX))
    marks.kernel_log = static_cast<std::uint64_t>(*record);
  reader.Finish();
  if (!problems.empty()) return Damaged(problems.ToError());
  return written_in == boot_id ? std::move(marks) : HealthMarks{};
}

void AddMarks(HealthMarks marks, HealthCheckpoint& checkpoint) {
  for (auto& [id, device] : checkpoint.devices)
    if (const auto found = marks.counters.find(id); found != marks.counters.end())
      device.before = std::move(found->second);
  for (auto& [vendor, driver] : checkpoint.drivers)
    if (const auto found = marks.instances.find(vendor); found != marks.instances.end())
      driver.instance = std::move(found->second);
  checkpoint.kernel_log = marks.kernel_log;
}

}  // namespace penstock::node::health
