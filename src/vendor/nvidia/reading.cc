// One call after the other; each tells a value and, by failing, something about the device.
#include "vendor/nvidia/reading.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "vendor/nvidia/dialect/kinds.h"
#include "vendor/nvidia/dialect/xid.h"
#include "vendor/nvidia/facts.h"

namespace penstock::vendor::nvidia {
namespace {

using base::Code;
using device::Evidence;
using device::Reading;

constexpr unsigned kMostProcesses = 1u << 16;

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

Evidence Lost(const std::string& id, abi::Return code, std::string_view function) {
  return Standing(id, code == abi::kResetRequired ? kResetRequired : kLost, code, ToError(code, function).message());
}

/// Calls functions on one device and remembers what their failing tells of it.
class Questions {
 public:
  Questions(const Nvml& nvml, abi::Device device) : nvml_(nvml), device_(device) {}

  /// True where the function answered.
  template <typename... P, typename... A>
  bool Ask(const Function<abi::Device, P...>& function, A... arguments) {
    return Note(function(device_, arguments...), function.name);
  }

  bool Note(abi::Return code, const char* function) {
    if (code == abi::kSuccess) {
      ++answered_;
      return true;
    }
    if (SaysDriverGone(code)) gone_ = ToError(code, function);
    // "Unknown error" from one call alone is that call's; from all it is the device's.
    const bool certain = code == abi::kGpuIsLost || code == abi::kResetRequired;
    if (certain && !certain_) {
      certain_ = true;
      lost_ = code;
      lost_function_ = function;
    } else if (SaysLost(code) && lost_ == abi::kSuccess) {
      lost_ = code;
      lost_function_ = function;
    }
    return false;
  }

  const Nvml& nvml() const { return nvml_; }
  const std::optional<base::Error>& gone() const { return gone_; }
  bool lost() const { return certain_ || (answered_ == 0 && lost_ != abi::kSuccess); }
  abi::Return lost_code() const { return lost_; }
  const char* lost_function() const { return lost_function_; }

 private:
  const Nvml& nvml_;
  abi::Device device_;
  int answered_ = 0;
  bool certain_ = false;
  abi::Return lost_ = abi::kSuccess;
  const char* lost_function_ = "";
  std::optional<base::Error> gone_;
};

/// What every GPU that is well answers; the values themselves are a sample's.
void AskWhetherItAnswers(Questions& questions) {
  const Nvml& nvml = questions.nvml();
  abi::Memory memory{};
  unsigned number = 0;
  questions.Ask(nvml->memory, &memory);
  questions.Ask(nvml->temperature, abi::kTemperatureOfTheGpu, &number);
  questions.Ask(nvml->power, &number);
}

/// Records of one kind of process list, whatever version the library has.
template <typename Record>
void AskProcessesOf(Questions& questions, const Function<abi::Device, unsigned*, void*>& function,
                    std::map<unsigned, std::uint64_t>& found) {
  std::vector<Record> records(16);
  for (int attempt = 0; attempt < 4; ++attempt) {
    auto count = static_cast<unsigned>(records.size());
    if (questions.Ask(function, &count, static_cast<void*>(records.data()))) {
      records.resize(std::min<std::size_t>(count, records.size()));
      break;
    }
    // It says how many there are where there was too little room; more may come meanwhile.
    if (count <= records.size() || count > kMostProcesses) return;
    records.assign(count + 16, Record{});
    if (attempt == 3) return;
  }
  for (const Record& record : records) {
    const std::uint64_t memory = record.used_memory == abi::kNotAvailable ? 0 : record.used_memory;
    found[record.pid] = std::max(found[record.pid], memory);
  }
}

void AskProcesses(Questions& questions, Reading& reading) {
  const Nvml& nvml = questions.nvml();
  std::map<unsigned, std::uint64_t> found;  // one that computes and draws is in two lists with the same memory
  for (int list = 0; list < 3; ++list) {
    if (nvml->short_processes[list]) {
      AskProcessesOf<abi::ProcessInfoV1>(questions, nvml->processes[list], found);
    } else {
      AskProcessesOf<abi::ProcessInfo>(questions, nvml->processes[list], found);
    }
  }
  for (const auto& [pid, memory] : found)
    if (pid != 0 && pid <= static_cast<unsigned>(std::numeric_limits<std::int32_t>::max()))
      reading.processes.push_back({static_cast<std::int32_t>(pid), base::Bytes{memory}});
}

void AskMemoryHealth(Questions& questions, const std::string& id, Reading& reading) {
  const Nvml& nvml = questions.nvml();
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (questions.Ask(nvml->remapped_rows, &corrected, &uncorrected, &pending, &failed)) {
    if (pending != 0) reading.evidence.push_back(Standing(id, kRemapPending, 1, "a remapped row waits for a reset"));
    if (failed != 0) reading.evidence.push_back(Standing(id, kRemapFailure, 1, "a row could not be remapped"));
  }
  unsigned long long errors = 0;
  if (questions.Ask(nvml->ecc_errors, abi::kUncorrectedErrors, abi::kVolatileCounter, &errors) && errors != 0) {
    const auto count = static_cast<std::int64_t>(std::min<unsigned long long>(errors, std::numeric_limits<std::int64_t>::max()));
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
  const Nvml& nvml = questions.nvml();
  abi::FieldValue field{};
  field.field = abi::kFieldRecoveryAction;
  field.status = abi::kNotSupported;
  if (!questions.Ask(nvml->field_values, 1, &field) || field.status != abi::kSuccess) return;  // a driver before 565
  const auto action = Integer(field);
  if (!action) return;
  reading.tells_recovery = true;
  if (*action != 0)
    reading.evidence.push_back(Standing(id, kRecoveryAction, *action, "the driver asks for: " + std::string(RecoveryActionName(*action))));
}

}  // namespace

Reading Unreachable(abi::Return code, std::string_view function, const std::string& id) {
  Reading reading;
  reading.reachable = false;
  reading.evidence.push_back(Lost(id, code, function));
  return reading;
}

base::Result<Reading> TakeReading(const Nvml& nvml, abi::Device device, const std::string& id) {
  Questions questions(nvml, device);
  Reading reading;
  AskWhetherItAnswers(questions);
  AskRecovery(questions, id, reading);
  AskMemoryHealth(questions, id, reading);
  AskProcesses(questions, reading);
  if (questions.gone()) return base::Error(Code::kUnavailable, "the NVIDIA driver went away: " + questions.gone()->message());
  if (questions.lost()) {
    reading.reachable = false;
    reading.evidence.push_back(Lost(id, questions.lost_code(), questions.lost_function()));
  }
  return reading;
}

}  // namespace penstock::vendor::nvidia
