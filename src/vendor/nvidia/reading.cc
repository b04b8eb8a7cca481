// One call after the other; each tells a value and, by failing, something about the device.
#include "vendor/nvidia/reading.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "device/kinds.h"
#include "vendor/nvidia/dialect/kinds.h"
#include "vendor/nvidia/dialect/xid.h"
#include "vendor/nvidia/facts.h"
#include "vendor/nvidia/questions.h"
#include "vendor/nvidia/running_processes.h"

namespace penstock::vendor::nvidia {
namespace {

using base::Code;
using device::Evidence;
using device::Reading;

/// Something that a poll found and that holds until a poll does not find it.
Evidence Standing(const std::string& id, std::string_view kind, std::int64_t code, std::string text) {
  Evidence evidence;
  evidence.source = device::EvidenceSource::kPoll;
  evidence.device = id;
  evidence.kind = kind;
  evidence.code = code;
  evidence.text = std::move(text);
  evidence.standing = true;
  return evidence;
}

/// What tells a reset where the driver does not say that what happened is over.
Evidence ResetCounter(const std::string& id, std::string_view name, unsigned long long value) {
  const auto code = static_cast<std::int64_t>(std::min<unsigned long long>(value, std::numeric_limits<std::int64_t>::max()));
  return Standing(id, std::string(device::kResetCounter) + std::string(name), code, "");
}

Evidence Lost(const std::string& id, abi::Return code, std::string_view function) {
  return Standing(id, code == abi::kResetRequired ? kResetRequired : kLost, code, ToError(code, function).message());
}

/// What every GPU that is well answers; the values themselves are a sample's.
void AskWhetherItAnswers(Questions& questions) {
  const Functions& nvml = questions.nvml();
  abi::Memory memory{};
  unsigned number = 0;
  questions.Ask(nvml.memory, &memory);
  questions.Ask(nvml.temperature, abi::kTemperatureOfTheGpu, &number);
  questions.Ask(nvml.power, &number);
}

void AskProcesses(Questions& questions, Reading& reading) {
  for (const auto& [pid, process] : AskRunningProcesses(questions))
    reading.processes.push_back({pid, base::Bytes{process.memory.value_or(0)}, process.graphics_only});
}

void AskMemoryHealth(Questions& questions, const std::string& id, Reading& reading) {
  const Functions& nvml = questions.nvml();
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (questions.Ask(nvml.remapped_rows, &corrected, &uncorrected, &pending, &failed)) {
    if (pending != 0) reading.evidence.push_back(Standing(id, kRemapPending, 1, "a remapped row waits for a reset"));
    if (failed != 0) reading.evidence.push_back(Standing(id, kRemapFailure, 1, "a row could not be remapped"));
  }
  unsigned long long errors = 0;
  if (!questions.Ask(nvml.ecc_errors, abi::kUncorrectedErrors, abi::kVolatileCounter, &errors)) return;
  const auto count = static_cast<std::int64_t>(std::min<unsigned long long>(errors, std::numeric_limits<std::int64_t>::max()));
  if (!reading.tells_recovery) reading.evidence.push_back(ResetCounter(id, "uncorrectable-ecc-errors", errors));
  if (errors != 0) {
    reading.evidence.push_back(
        Standing(id, kEccUncorrectable, count, std::to_string(errors) + " uncorrectable ECC errors since the last reset"));
  }
}

/// The value of a field, whatever type the driver gives it.
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

void AskRecovery(Questions& questions, const std::string& id, Reading& reading) {
  const Functions& nvml = questions.nvml();
  abi::FieldValue field{};
  field.field = abi::kFieldRecoveryAction;
  field.status = abi::kNotSupported;
  if (!questions.Ask(nvml.field_values, 1, &field) || field.status != abi::kSuccess) return;  // a driver before 565
  const auto action = Integer(field);
  if (!action) return;
  reading.tells_recovery = true;
  if (*action != 0)
    reading.evidence.push_back(Standing(id, kRecoveryAction, *action, "the driver asks for: " + std::string(RecoveryActionName(*action))));
}

/// nvml.h: "since the driver was last reloaded". A reset begins it anew too.
void AskEnergy(Questions& questions, const std::string& id, Reading& reading) {
  unsigned long long millijoules = 0;
  if (questions.Ask(questions.nvml().energy, &millijoules)) reading.evidence.push_back(ResetCounter(id, "energy", millijoules));
}

}  // namespace

Reading Unreachable(abi::Return code, std::string_view function, const std::string& id) {
  Reading reading;
  reading.reachable = false;
  reading.evidence.push_back(Lost(id, code, function));
  return reading;
}

base::Result<Reading> TakeReading(const Nvml& nvml, abi::Device device, const std::string& id) {
  Questions questions(nvml.functions(), device);
  Reading reading;
  AskWhetherItAnswers(questions);
  AskRecovery(questions, id, reading);
  AskMemoryHealth(questions, id, reading);
  if (!reading.tells_recovery) AskEnergy(questions, id, reading);
  AskProcesses(questions, reading);
  if (questions.gone()) return base::Error(Code::kUnavailable, "the NVIDIA driver went away: " + questions.gone()->message());
  if (questions.lost()) {
    reading.reachable = false;
    reading.evidence.push_back(Lost(id, questions.lost_code(), questions.lost_function()));
  }
  return reading;
}

}  // namespace penstock::vendor::nvidia
