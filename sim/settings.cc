// `penstock-sim set`: what a GPU is doing.
#include <algorithm>
#include <cstring>

#include "base/core/quantity.h"
#include "base/core/strings.h"
#include "sim/control.h"

namespace penstock::sim {
namespace {

using base::Code;
using base::Error;
using base::Status;

Error Bad(const std::string& key, const std::string& value, const std::string& wanted) {
  return {Code::kInvalidArgument, key + "=" + value + ": " + wanted};
}

// "1024" is MiB; "10Gi" and its kin are themselves.
base::Result<std::uint64_t> Memory(const std::string& key, const std::string& value) {
  if (const auto mebibytes = base::ParseUint(value); mebibytes && *mebibytes < (1u << 24)) return *mebibytes << 20;
  const auto bytes = base::ParseBytes(value);
  if (!bytes.ok()) return Bad(key, value, "give MiB, or a quantity such as 10Gi");
  return bytes->count;
}

// What was used up to now, before the draw changes.
void SettleEnergy(SimGpu& gpu) {
  const std::uint64_t now = NowMicroseconds();
  if (now > gpu.energy_since) gpu.energy += (now - gpu.energy_since) / 1000 * gpu.power_draw / 1000;
  gpu.energy_since = now;
}

// Power, clocks and link follow use, as they would.
void Work(SimGpu& gpu, std::uint32_t percent) {
  const bool idle = percent == 0;
  gpu.use_gpu = percent;
  gpu.use_memory = percent / 2;
  gpu.power_draw = gpu.power_idle + (gpu.power_limit - gpu.power_idle) / 100 * percent;
  gpu.clock_sm = idle ? gpu.clock_sm_idle : gpu.clock_sm_max;
  gpu.clock_memory = idle ? gpu.clock_memory_idle : gpu.clock_memory_max;
  gpu.pstate = idle ? gpu.pstate_idle : 0;
  gpu.pcie_gen_current = idle ? gpu.pcie_gen_idle : gpu.pcie_gen_max;
  gpu.clock_event_reasons = idle ? 1 : 0;
  for (std::uint32_t i = 0; i < gpu.process_count; i++) gpu.processes[i].sm_percent = percent / gpu.process_count;
}

// pid:memory[:name[:type]]
Status AddProcess(SimGpu& gpu, const std::string& value) {
  const auto parts = base::Split(value, ':');
  const auto pid = base::ParseUint(parts[0]);
  if (!pid || *pid == 0 || *pid > UINT32_MAX || parts.size() < 2 || parts.size() > 4)
    return Bad("process", value, "give pid:MiB[:name[:C|G|M]]");
  ASSIGN(const std::uint64_t bytes, Memory("process", parts[1]));
  const std::string type = parts.size() > 3 ? parts[3] : "C";
  if (type != "C" && type != "G" && type != "M") return Bad("process", value, "the type is C (compute), G (graphics) or M (MPS client)");
  if (gpu.process_count == kSimMaxProcesses)
    return Error(Code::kResourceExhausted, "a simulated GPU holds " + std::to_string(kSimMaxProcesses) + " processes at most");
  SimProcess process{};
  process.pid = static_cast<std::uint32_t>(*pid);
  process.type = static_cast<std::uint32_t>(type[0]);
  process.memory_bytes = bytes;
  const std::string name = parts.size() > 2 ? parts[2] : "simulated";
  std::memcpy(process.name, name.data(), std::min(name.size(), sizeof process.name - 1));
  SimProcess* end = gpu.processes + gpu.process_count;
  SimProcess* same =
      std::find_if(gpu.processes, end, [&](const SimProcess& other) { return other.pid == process.pid && other.type == process.type; });
  *same = process;
  if (same == end) gpu.process_count++;
  return {};
}

base::Result<std::uint32_t> Number(const std::string& key, const std::string& value, std::uint32_t most, const std::string& unit) {
  const auto number = base::ParseUint(value);
  if (!number || *number > most) return Bad(key, value, "give a whole number of " + unit + " from 0 to " + std::to_string(most));
  return static_cast<std::uint32_t>(*number);
}

Status SetMig(SimGpu& gpu, const std::string& value) {
  if (gpu.mig_max == 0) return Error(Code::kFailedPrecondition, std::string(gpu.name) + " has no MIG");
  if (value != "enabled" && value != "disabled") return Bad("mig", value, "enabled or disabled");
  gpu.mig_current = gpu.mig_pending = value == "enabled";
  return {};
}

// UUID.CLIQUE, as several machines' GPUs that share a fabric have it; "alone" as one machine's own.
Status SetFabric(SimGpu& gpu, const std::string& value) {
  if (gpu.fabric == SIM_NA) return Error(Code::kFailedPrecondition, std::string(gpu.name) + " is in no NVLink fabric");
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
    if (!good) return Bad("fabric", value, "give the cluster's UUID and the clique as UUID.NUMBER, or alone");
    clique = static_cast<std::uint32_t>(*number);
  }
  std::memcpy(gpu.fabric_cluster, cluster, sizeof cluster);
  gpu.fabric_clique = clique;
  return {};
}

// What tells one board from another of its model.
Status SetIdentity(SimGpu& gpu, const std::string& key, const std::string& value) {
  const bool uuid = key == "uuid";
  const std::size_t room = uuid ? sizeof gpu.uuid : sizeof gpu.serial;
  if (value.empty() || value.size() >= room || (uuid && (!value.starts_with("GPU-") || value.size() != 40)))
    return Bad(key, value, uuid ? "GPU-, and a UUID" : "give at most " + std::to_string(room - 1) + " characters");
  char* const to = uuid ? gpu.uuid : gpu.serial;
  std::memset(to, 0, room);
  std::memcpy(to, value.data(), value.size());
  return {};
}

// Applies one "key=value" to a copy.
Status Apply(SimGpu& gpu, const std::string& setting) {
  const std::size_t equals = setting.find('=');
  const std::string key = setting.substr(0, equals), value = equals == std::string::npos ? "" : setting.substr(equals + 1);
  const std::vector<std::string> keys = {"utilisation",  "utilization", "memory-used", "temperature", "power", "process",
                                         "no-processes", "mig",         "persistence", "fabric",      "uuid",  "serial"};
  if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
    const auto near = base::Nearest(key, keys);
    return Error(Code::kInvalidArgument,
                 "no setting \"" + key + "\"; " + (near ? "did you mean " + *near + "?" : "there are " + base::Join(keys, ", ")));
  }
  if (key == "process") return AddProcess(gpu, value);
  if (key == "mig") return SetMig(gpu, value);
  if (key == "fabric") return SetFabric(gpu, value);
  if (key == "uuid" || key == "serial") return SetIdentity(gpu, key, value);
  if (key == "no-processes") {
    gpu.process_count = 0;
  } else if (key == "utilisation" || key == "utilization") {
    ASSIGN(const std::uint32_t percent, Number(key, value, 100, "percent"));
    Work(gpu, percent);
  } else if (key == "memory-used") {
    ASSIGN(const std::uint64_t bytes, Memory(key, value));
    if (bytes > gpu.memory_total - gpu.memory_reserved)
      return Bad(key, value, "the GPU has " + std::to_string((gpu.memory_total - gpu.memory_reserved) >> 20) + " MiB to use");
    gpu.memory_used = bytes;
  } else if (key == "temperature") {
    ASSIGN(gpu.temperature, Number(key, value, 150, "°C"));
  } else if (key == "power") {
    ASSIGN(const std::uint32_t watts, Number(key, value, 2000, "watts"));
    gpu.power_draw = watts * 1000;
  } else if (key == "persistence") {
    ASSIGN(gpu.persistence, Number(key, value, 1, "on (1) or off (0)"));
  }
  return {};
}

}  // namespace

Status Control::Set(const std::vector<std::uint32_t>& gpus, const std::vector<std::string>& settings) {
  const bool other_board = std::any_of(settings.begin(), settings.end(), [](const std::string& it) { return it.starts_with("uuid="); });
  if (other_board && gpus.size() != 1) return Error(Code::kInvalidArgument, "uuid: give it to one GPU");
  {
    ASSIGN(StateFile::Change change, file_.Begin());
    std::vector<SimGpu> changed;
    for (const std::uint32_t index : gpus) {
      changed.push_back(change->gpus[index]);
      SettleEnergy(changed.back());
      for (const std::string& setting : settings) TRY(Apply(changed.back(), setting));
    }
    for (std::size_t i = 0; i < gpus.size(); i++) change->gpus[gpus[i]] = changed[i];
  }
  return other_board ? Sync() : Status{};
}

}  // namespace penstock::sim
