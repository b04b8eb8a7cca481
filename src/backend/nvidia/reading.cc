// Each call reads a value and, by failing, says something about the device.
#include "backend/nvidia/reading.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "backend/nvidia/dialect/kinds.h"
#include "backend/nvidia/dialect/xid.h"
#include "backend/nvidia/facts.h"
#include "backend/nvidia/nvml_device.h"
#include "backend/nvidia/running_processes.h"
#include "device/kinds.h"

namespace penstock::backend::nvidia {
namespace {

using device::Evidence;
using device::Reading;

/// Evidence that a poll found and that holds until a poll does not find it.
Evidence Standing(const std::string& id, std::string_view kind, std::int64_t code,
                  std::string text) {
  Evidence evidence;
  evidence.source = device::EvidenceSource::kPoll;
  evidence.device = id;
  evidence.kind = kind;
  evidence.code = code;
  evidence.text = std::move(text);
  evidence.standing = true;
  return evidence;
}

/// A counter that reveals a reset, for drivers that do not report that a fault is over.
Evidence ResetCounter(const std::string& id, std::string_view name, unsigned long long value) {
  const auto code = static_cast<std::int64_t>(
      std::min<unsigned long long>(value, std::numeric_limits<std::int64_t>::max()));
  return Standing(id, std::string(device::kResetCounter) + std::string(name), code, "");
}

Evidence Lost(const std::string& id, abi::Return code, std::string_view function) {
  return Standing(id, code == abi::kResetRequired ? kResetRequired : kLost, code,
                  ToError(code, function).message());
}

/// The calls that every healthy GPU answers; the values themselves belong to samples.
void ProbeLiveness(NvmlDevice& nvml_device) {
  const Functions& nvml = nvml_device.nvml();
  abi::Memory memory{};
  unsigned number = 0;
  nvml_device.Call(nvml.memory, &memory);
  nvml_device.Call(nvml.temperature, abi::kTemperatureOfTheGpu, &number);
  nvml_device.Call(nvml.power, &number);
}

void ReadProcesses(NvmlDevice& nvml_device, ProcessesOf which, Reading& reading) {
  for (const auto& [pid, process] : ReadRunningProcesses(nvml_device, which))
    reading.processes.push_back(
        {pid, base::Bytes{process.memory.value_or(0)}, process.graphics_only});
}

void ReadMemoryHealth(NvmlDevice& nvml_device, const std::string& id, Reading& reading) {
  const Functions& nvml = nvml_device.nvml();
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (nvml_device.Call(nvml.remapped_rows, &corrected, &uncorrected, &pending, &failed)) {
    if (pending != 0)
      reading.evidence.push_back(
          Standing(id, kRemapPending, 1, "a memory row remapping is pending until the next reset"));
    if (failed != 0)
      reading.evidence.push_back(
          Standing(id, kRemapFailure, 1, "a memory row could not be remapped"));
  }
  unsigned long long errors = 0;
  if (!nvml_device.Call(nvml.ecc_errors, abi::kUncorrectedErrors, abi::kVolatileCounter, &errors))
    return;
  const auto count = static_cast<std::int64_t>(
      std::min<unsigned long long>(errors, std::numeric_limits<std::int64_t>::max()));
  if (!reading.reports_recovery)
    reading.evidence.push_back(ResetCounter(id, "uncorrectable-ecc-errors", errors));
  if (errors != 0) {
    reading.evidence.push_back(
        Standing(id, kEccUncorrectable, count,
                 std::to_string(errors) + " uncorrectable ECC errors since the last reset"));
  }
}

/// The integer value of a field, whatever type the driver gives it.
std::optional<std::int64_t> Integer(const abi::FieldValue& field) {
  switch (field.type) {
    case abi::kUnsignedInt: return field.value.ui;
    case abi::kSignedInt: return field.value.si;
    case abi::kUnsignedLong:
    case abi::kUnsignedLongLong: return static_cast<std::int64_t>(field.value.ull);
    case abi::kSignedLongLong: return field.value.sll;
    default: return std::nullopt;
  }
}

void ReadRecovery(NvmlDevice& nvml_device, const std::string& id, Reading& reading) {
  const Functions& nvml = nvml_device.nvml();
  abi::FieldValue field{};
  field.field = abi::kFieldRecoveryAction;
  field.status = abi::kNotSupported;
  if (!nvml_device.Call(nvml.field_values, 1, &field) || field.status != abi::kSuccess)
    return;  // a driver before 565
  const auto action = Integer(field);
  if (!action) return;
  reading.reports_recovery = true;
  if (*action != 0)
    reading.evidence.push_back(
        Standing(id, kRecoveryAction, *action,
                 "the driver requests: " + std::string(RecoveryActionName(*action))));
}

/// nvml.h: "since the driver was last reloaded". A reset also restarts the counter.
void ReadEnergy(NvmlDevice& nvml_device, const std::string& id, Reading& reading) {
  unsigned long long millijoules = 0;
  if (nvml_device.Call(nvml_device.nvml().energy, &millijoules))
    reading.evidence.push_back(ResetCounter(id, "energy", millijoules));
}

/// What the answers of all calls say about the device.
base::Result<Reading> Finish(const NvmlDevice& nvml_device, const std::string& id,
                             Reading reading) {
  if (nvml_device.gone())
    return base::Error(Code::kUnavailable,
                       "the NVIDIA driver is gone: " + nvml_device.gone()->message());
  if (nvml_device.lost()) {
    reading.reachable = false;
    reading.evidence.push_back(Lost(id, nvml_device.lost_code(), nvml_device.lost_function()));
  }
  return reading;
}

}  // namespace

Reading Unreachable(abi::Return code, std::string_view function, const std::string& id) {
  Reading reading;
  reading.reachable = false;
  reading.evidence.push_back(Lost(id, code, function));
  return reading;
}

base::Result<Reading> TakeReading(const Nvml& nvml, abi::Device device, const std::string& id,
                                  bool in_mig_mode) {
  NvmlDevice nvml_device(nvml.functions(), device);
  Reading reading;
  ProbeLiveness(nvml_device);
  ReadRecovery(nvml_device, id, reading);
  ReadMemoryHealth(nvml_device, id, reading);
  if (!reading.reports_recovery) ReadEnergy(nvml_device, id, reading);
  ReadProcesses(nvml_device, in_mig_mode ? ProcessesOf::kGpuAlone : ProcessesOf::kDevice, reading);
  return Finish(nvml_device, id, std::move(reading));
}

base::Result<Reading> TakeMigReading(const Nvml& nvml, abi::Device mig_device,
                                     const std::string& id) {
  NvmlDevice nvml_device(nvml.functions(), mig_device);
  Reading reading{.reports_recovery = true};
  abi::Memory memory{};
  nvml_device.Call(nvml->memory, &memory);
  ReadProcesses(nvml_device, ProcessesOf::kDevice, reading);
  return Finish(nvml_device, id, std::move(reading));
}

}  // namespace penstock::backend::nvidia
