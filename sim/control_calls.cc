// Faults of calls and of their answers, and the clock on which the answers depend.
#include <algorithm>
#include <iterator>

#include "base/core/strings.h"
#include "sim/control.h"
#include "sim/meters.h"

namespace penstock::sim {
namespace {

constexpr const char* kFunctionNames[] = {
#define F(branch, name, parameters) #name,
#define D F
#include "sim/nvml/functions.def"
#undef F
#undef D
};

base::Status CheckFunction(const std::string& name) {
  std::vector<std::string> names;
  for (const char* known : kFunctionNames) {
    names.emplace_back(known);
    names.emplace_back(known, SimBaseLength(known));
  }
  if (std::find(names.begin(), names.end(), name) != names.end()) return {};
  const auto near = base::Nearest(name, names);
  return Error(Code::kInvalidArgument, "the simulated library has no function \"" + name + "\"" +
                                           (near ? "; did you mean " + *near + "?" : ""));
}

}  // namespace

base::Status Control::AddFault(const SimFault& fault) {
  ASSIGN(StateFile::Change change, file_.Begin());
  for (SimFault& slot : change->faults) {
    if (slot.mode != kSimFaultNone) continue;
    slot = fault;
    change->fault_count = std::min<std::uint32_t>(change->fault_count + 1, kSimMaxFaults);
    return {};
  }
  return Error(Code::kResourceExhausted,
               "all " + std::to_string(kSimMaxFaults) +
                   " slots for faults of calls are in use; heal some first");
}

base::Status Control::FaultCall(std::int32_t gpu, const std::string& function, std::uint32_t mode,
                                std::uint32_t milliseconds, std::uint32_t code,
                                std::uint32_t count) {
  if (!function.empty()) TRY(CheckFunction(function));
  SimFault fault{};
  fault.mode = mode;
  fault.function =
      function.empty() ? 0 : SimHash(function.c_str(), static_cast<std::uint32_t>(function.size()));
  fault.gpu = gpu;
  fault.milliseconds = milliseconds;
  fault.code = code;
  fault.remaining = count;
  return AddFault(fault);
}

base::Status Control::FaultField(std::int32_t gpu, std::uint32_t field, const FieldFault& what,
                                 std::uint32_t count) {
  SimFault fault{};
  fault.mode = kSimFaultField;
  fault.function = field;
  fault.gpu = gpu;
  fault.remaining = count;
  if (what.value) fault.field_parts |= kSimFieldValue, fault.field_value = *what.value;
  if (what.status) fault.field_parts |= kSimFieldStatus, fault.code = *what.status;
  if (what.type) fault.field_parts |= kSimFieldType, fault.field_type = *what.type;
  return AddFault(fault);
}

base::Status Control::Nonsense(std::uint32_t gpu, SimReading reading, std::uint64_t value) {
  ASSIGN(StateFile::Change change, file_.Begin());
  change->gpus[gpu].nonsense |= 1u << reading;
  change->gpus[gpu].nonsense_values[reading] = value;
  return {};
}

base::Status Control::JunkProcessSamples(std::uint32_t gpu) {
  ASSIGN(StateFile::Change change, file_.Begin());
  change->gpus[gpu].junk_process_samples = 1;
  return {};
}

base::Status Control::StopClock() {
  ASSIGN(StateFile::Change change, file_.Begin());
  change->clock_stopped = SimNow(&*change, NowMicroseconds());
  return {};
}

base::Status Control::RunClock() {
  ASSIGN(StateFile::Change change, file_.Begin());
  if (!change->clock_stopped) return {};
  change->clock_ahead = static_cast<std::int64_t>(change->clock_stopped - NowMicroseconds());
  change->clock_stopped = 0;
  return {};
}

base::Status Control::AdvanceClock(std::uint64_t microseconds) {
  ASSIGN(StateFile::Change change, file_.Begin());
  if (change->clock_stopped)
    change->clock_stopped += microseconds;
  else
    change->clock_ahead += static_cast<std::int64_t>(microseconds);
  return {};
}

base::Status Control::HealCalls() {
  ASSIGN(StateFile::Change change, file_.Begin());
  for (SimFault& fault : change->faults) fault = {};
  change->fault_count = 0;
  return {};
}

}  // namespace penstock::sim
