// Implements `penstock-sim set`: changes what a GPU is doing.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/core/quantity.h"
#include "base/core/strings.h"
#include "sim/control.h"
#include "sim/meters.h"
#include "sim/mig.h"
#include "sim/settings_table.h"
#include "sim/workload.h"

namespace penstock::sim {
namespace {

constexpr std::uint64_t kEventMigConfig = 0x100;

// Reads an amount of memory: a plain number such as "1024" is MiB; "10Gi" and similar values carry
// their unit.
base::Result<std::uint64_t> Memory(const std::string& key, const std::string& value) {
  if (const auto mebibytes = base::ParseUint(value); mebibytes && *mebibytes < (1u << 24))
    return *mebibytes << 20;
  const auto bytes = base::ParseBytes(value);
  if (!bytes.ok()) return BadSetting(key, value, "expected MiB, or a quantity such as 10Gi");
  return bytes->count;
}

// Sets the GPU's utilization to the sum of its processes', at most 100 %.
void WorkOfProcesses(SimGpu& gpu) {
  const auto sum = [&gpu](std::uint32_t SimProcess::*use) {
    std::uint32_t percent = 0;
    for (std::uint32_t i = 0; i < gpu.process_count; i++)
      percent += gpu.processes[i].own_use ? gpu.processes[i].*use : 0;
    return std::min(percent, 100u);
  };
  Work(gpu, sum(&SimProcess::use_sm));
  gpu.use_memory = sum(&SimProcess::use_memory);
  gpu.use_encoder = sum(&SimProcess::use_encoder);
  gpu.use_decoder = sum(&SimProcess::use_decoder);
}

bool AnyOwnUse(const SimGpu& gpu) {
  return std::any_of(gpu.processes, gpu.processes + gpu.process_count,
                     [](const SimProcess& process) { return process.own_use != 0; });
}

// Reads SM[/MEMORY[/ENCODER[/DECODER]]] in percent; the memory's default is half of the SMs'.
Status SetUse(SimProcess& process, const std::string& value, const std::string& text) {
  std::vector<std::uint32_t> percents;
  for (const std::string& part : base::Split(text, '/')) {
    const auto percent = base::ParseUint(part);
    if (!percent || *percent > 100)
      return BadSetting("process", value,
                        "its utilization is in percent: SM[/MEMORY[/ENCODER[/DECODER]]]");
    percents.push_back(static_cast<std::uint32_t>(*percent));
  }
  if (percents.size() > 4)
    return BadSetting("process", value, "its utilization is SM[/MEMORY[/ENCODER[/DECODER]]]");
  process.own_use = 1;
  process.use_sm = percents[0];
  process.use_memory = percents.size() > 1 ? percents[1] : percents[0] / 2;
  process.use_encoder = percents.size() > 2 ? percents[2] : 0;
  process.use_decoder = percents.size() > 3 ? percents[3] : 0;
  return {};
}

// Reads giGPU_INSTANCE/ciCOMPUTE_INSTANCE.
Status SetInstance(const SimGpu& gpu, SimProcess& process, const std::string& value,
                   const std::string& text) {
  const auto parts = base::Split(text, '/');
  const auto number = [&](std::size_t part, const char* prefix) {
    return parts.size() == 2 && parts[part].starts_with(prefix)
               ? base::ParseUint(parts[part].substr(2))
               : std::nullopt;
  };
  const auto instance = number(0, "gi"), compute = number(1, "ci");
  if (!instance || !compute || *instance >= kSimGpuInstances || *compute >= kSimComputeInstances ||
      !gpu.instances[*instance].computes[*compute].born)
    return BadSetting("process", value, "the GPU has no MIG instance " + text + "; write gi1/ci0");
  process.gpu_instance = static_cast<std::uint32_t>(*instance);
  process.compute_instance = static_cast<std::uint32_t>(*compute);
  return {};
}

// pid:memory[:name[:type][:use][:instance]]
Status AddProcess(SimGpu& gpu, const std::string& value) {
  const auto parts = base::Split(value, ':');
  const auto pid = base::ParseUint(parts[0]);
  if (!pid || *pid == 0 || *pid > UINT32_MAX || parts.size() < 2 || parts.size() > 6)
    return BadSetting("process", value, "expected pid:MiB[:name[:C|G|M][:use][:giN/ciN]]");
  ASSIGN(const std::uint64_t bytes, Memory("process", parts[1]));
  SimProcess process{};
  process.pid = static_cast<std::uint32_t>(*pid);
  process.type = 'C';
  process.gpu_instance = process.compute_instance = SIM_NA;
  process.memory_bytes = bytes;
  const std::string name = parts.size() > 2 && !parts[2].empty() ? parts[2] : "simulated";
  std::memcpy(process.name, name.data(), std::min(name.size(), sizeof process.name - 1));
  for (std::size_t i = 3; i < parts.size(); i++) {
    const std::string& part = parts[i];
    if (part == "C" || part == "G" || part == "M")
      process.type = static_cast<unsigned char>(part[0]);
    else if (!part.empty() && part[0] >= '0' && part[0] <= '9')
      TRY(SetUse(process, value, part));
    else if (part.starts_with("gi"))
      TRY(SetInstance(gpu, process, value, part));
    else
      return BadSetting("process", value,
                        "the type is C (compute), G (graphics) or M (MPS client); the utilization "
                        "is in percent; an instance is giN/ciN");
  }
  SimProcess* end = gpu.processes + gpu.process_count;
  SimProcess* same = std::find_if(gpu.processes, end, [&](const SimProcess& other) {
    return other.pid == process.pid && other.type == process.type;
  });
  if (same == end && gpu.process_count == kSimMaxProcesses)
    return Error(
        Code::kResourceExhausted,
        "a simulated GPU holds " + std::to_string(kSimMaxProcesses) + " processes at most");
  const bool had_use = AnyOwnUse(gpu);
  *same = process;
  if (same == end) gpu.process_count++;
  if (had_use || process.own_use) WorkOfProcesses(gpu);
  return {};
}

Status EndProcess(SimGpu& gpu, const std::string& value) {
  const auto pid = base::ParseUint(value);
  SimProcess* end = gpu.processes + gpu.process_count;
  const bool had_use = AnyOwnUse(gpu);
  SimProcess* left = std::remove_if(gpu.processes, end,
                                    [&](const SimProcess& process) { return process.pid == pid; });
  if (left == end) return BadSetting("end-process", value, "the GPU has no such process");
  gpu.process_count = static_cast<std::uint32_t>(left - gpu.processes);
  if (had_use) WorkOfProcesses(gpu);
  return {};
}

// Reads names of nvmlClocksEventReasons, or none.
Status SetClockEvents(SimGpu& gpu, const std::string& value) {
  constexpr std::pair<const char*, std::uint64_t> kReasons[] = {
      {"idle", 0x1},        {"clocks-setting", 0x2}, {"power-cap", 0x4},
      {"hw-slowdown", 0x8}, {"sync-boost", 0x10},    {"sw-thermal", 0x20},
      {"hw-thermal", 0x40}, {"power-brake", 0x80},   {"display-clocks", 0x100}};
  std::uint64_t reasons = 0;
  for (const std::string& name : base::Split(value, ',')) {
    if (name == "none") continue;
    const auto* at = std::find_if(std::begin(kReasons), std::end(kReasons),
                                  [&](const auto& reason) { return name == reason.first; });
    if (at == std::end(kReasons)) {
      std::vector<std::string> names = {"none"};
      for (const auto& reason : kReasons) names.emplace_back(reason.first);
      return BadSetting("clock-events", value,
                        "expected one or more of " + base::Join(names, ", "));
    }
    reasons |= at->second;
  }
  gpu.clock_event_reasons = reasons;
  return {};
}

// As nvmlDeviceSetMigMode: while the GPU has processes, the mode of an Ampere GPU is pending.
Status SetMig(SimGpu& gpu, const std::string& value) {
  if (!SimHasMig(&gpu))
    return Error(Code::kFailedPrecondition, std::string(gpu.name) + " has no MIG");
  if (value != "enabled" && value != "disabled")
    return BadSetting("mig", value, "expected enabled or disabled");
  if (SimSetMigMode(&gpu, value == "enabled", gpu.metered) == kSimMigRefused)
    return Error(Code::kFailedPrecondition,
                 std::string(gpu.name) +
                     " is in use: end its processes and instances before the mode changes");
  return {};
}

// Reads UUID.CLIQUE, for a fabric that several machines' GPUs share, or "alone" for a fabric of one
// machine.
Status SetFabric(SimGpu& gpu, const std::string& value) {
  if (gpu.fabric == SIM_NA)
    return Error(Code::kFailedPrecondition, std::string(gpu.name) + " is in no NVLink fabric");
  std::uint8_t cluster[sizeof gpu.fabric_cluster] = {};
  std::uint32_t clique = 0;
  if (value != "alone") {
    const auto parts = base::Split(value, '.');
    std::string digits = parts[0];
    std::erase(digits, '-');
    const auto number = parts.size() == 2 ? base::ParseUint(parts[1]) : std::nullopt;
    bool good = number && *number <= UINT32_MAX && digits.size() == 2 * sizeof cluster;
    for (std::size_t i = 0; good && i < sizeof cluster; i++) {
      const auto byte = base::ParseUint(digits.substr(2 * i, 2), 16);
      good = byte.has_value();
      cluster[i] = static_cast<std::uint8_t>(byte.value_or(0));
    }
    if (!good)
      return BadSetting("fabric", value,
                        "expected the cluster's UUID and the clique as UUID.NUMBER, or alone");
    clique = static_cast<std::uint32_t>(*number);
  }
  std::memcpy(gpu.fabric_cluster, cluster, sizeof cluster);
  gpu.fabric_clique = clique;
  return {};
}

// Sets what distinguishes one board from another of its model.
Status SetIdentity(SimGpu& gpu, const std::string& key, const std::string& value) {
  const bool uuid = key == "uuid";
  const std::size_t room = uuid ? sizeof gpu.uuid : sizeof gpu.serial;
  if (value.empty() || value.size() >= room ||
      (uuid && (!value.starts_with("GPU-") || value.size() != 40)))
    return BadSetting(key, value,
                      uuid ? "expected GPU- and a UUID"
                           : "expected at most " + std::to_string(room - 1) + " characters");
  char* const to = uuid ? gpu.uuid : gpu.serial;
  std::memset(to, 0, room);
  std::copy(value.begin(), value.end(), to);
  return {};
}

Status SetPower(SimGpu& gpu, const std::string& key, const std::string& value) {
  if (gpu.power_draw == SIM_NA)
    return Error(Code::kFailedPrecondition, std::string(gpu.name) + " does not report its power");
  ASSIGN(const std::uint64_t watts, SettingNumber(key, value, 2000, "watts"));
  (key == "power" ? gpu.power_draw : gpu.power_limit) = static_cast<std::uint32_t>(watts * 1000);
  return {};
}

Status SetMemoryUsed(SimGpu& gpu, const std::string& value) {
  ASSIGN(const std::uint64_t bytes, Memory("memory-used", value));
  const std::uint64_t most = gpu.memory_total - gpu.memory_reserved;
  if (bytes > most)
    return BadSetting("memory-used", value,
                      "the GPU has " + std::to_string(most >> 20) + " MiB available");
  gpu.memory_used = bytes;
  return {};
}

Status SetBar1Used(SimGpu& gpu, const std::string& value) {
  ASSIGN(const std::uint64_t bytes, Memory("bar1-used", value));
  if (bytes > gpu.bar1_total)
    return BadSetting("bar1-used", value,
                      "BAR1 has " + std::to_string(gpu.bar1_total >> 20) + " MiB");
  gpu.bar1_used = bytes;
  return {};
}

// Applies one "key=value" to a copy.
Status Apply(SimGpu& gpu, const std::string& setting) {
  const std::size_t equals = setting.find('=');
  const std::string key = setting.substr(0, equals),
                    value = equals == std::string::npos ? "" : setting.substr(equals + 1);
  std::vector<std::string> keys = {"utilisation", "utilization",  "memory-used",  "bar1-used",
                                   "power",       "power-limit",  "clock-events", "process",
                                   "end-process", "no-processes", "mig",          "fabric",
                                   "uuid",        "serial",       "counters"};
  std::ranges::move(PlainSettings(), std::back_inserter(keys));
  if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
    const auto near = base::Nearest(key, keys);
    return Error(Code::kInvalidArgument, "unknown setting \"" + key + "\"; " +
                                             (near ? "did you mean " + *near + "?"
                                                   : "settings: " + base::Join(keys, ", ")));
  }
  if (key == "process") return AddProcess(gpu, value);
  if (key == "end-process") return EndProcess(gpu, value);
  if (key == "mig") return SetMig(gpu, value);
  if (key == "fabric") return SetFabric(gpu, value);
  if (key == "uuid" || key == "serial") return SetIdentity(gpu, key, value);
  if (key == "power" || key == "power-limit") return SetPower(gpu, key, value);
  if (key == "memory-used") return SetMemoryUsed(gpu, value);
  if (key == "bar1-used") return SetBar1Used(gpu, value);
  if (key == "clock-events") return SetClockEvents(gpu, value);
  if (key == "no-processes") {
    const bool had_use = AnyOwnUse(gpu);
    gpu.process_count = 0;
    if (had_use) WorkOfProcesses(gpu);
    return {};
  }
  if (key == "counters") {
    if (value != "0")
      return BadSetting(key, value, "counters=0 resets all of them, as a GPU reset does");
    SimZeroMeters(&gpu, gpu.metered);
    return {};
  }
  if (key == "utilisation" || key == "utilization") {
    ASSIGN(const std::uint64_t percent, SettingNumber(key, value, 100, "percent"));
    Work(gpu, static_cast<std::uint32_t>(percent));
    return {};
  }
  return SetPlain(gpu, key, value);
}

}  // namespace

Status Control::Set(const std::vector<std::uint32_t>& gpus,
                    const std::vector<std::string>& settings) {
  const auto any = [&settings](const char* key) {
    return std::any_of(settings.begin(), settings.end(),
                       [key](const std::string& it) { return it.starts_with(key); });
  };
  const bool other_board = any("uuid="), other_mode = any("mig=");
  if (other_board && gpus.size() != 1)
    return Error(Code::kInvalidArgument, "uuid: set it on a single GPU");
  {
    ASSIGN(StateFile::Change change, file_.Begin());
    std::vector<SimGpu> changed;
    for (const std::uint32_t index : gpus) {
      changed.push_back(change->gpus[index]);
      SimSettle(&changed.back(), SimNow(&*change, NowMicroseconds()));
      for (const std::string& setting : settings) TRY(Apply(changed.back(), setting));
      Follow(changed.back());
    }
    for (std::size_t i = 0; i < gpus.size(); i++) {
      if (change->gpus[gpus[i]].mig_current != changed[i].mig_current)
        change.AddEvent(gpus[i], kEventMigConfig, 0);
      change->gpus[gpus[i]] = changed[i];
    }
  }
  if (other_board) return Sync();
  return other_mode ? SyncInstances() : Status{};
}

}  // namespace penstock::sim
