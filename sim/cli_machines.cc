// Implements the verbs list, describe, start, stop and status, which concern whole machines.
#include <algorithm>
#include <cstdio>
#include <iostream>

#include <nlohmann/json.hpp>

#include "base/core/strings.h"
#include "sim/cli.h"
#include "sim/compile.h"
#include "sim/control.h"
#include "sim/meters.h"

namespace penstock::sim::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string Address(const SimGpu& gpu) {
  return ToString(PciAddress{gpu.domain, gpu.bus, gpu.device});
}

// "5 × NVIDIA A100…", in the machine file's order.
std::string Models(const SimState& state) {
  std::vector<std::pair<std::string, int>> models;
  for (std::uint32_t i = 0; i < state.gpu_count; i++) {
    const std::string name = state.gpus[i].name;
    auto at = std::find_if(models.begin(), models.end(),
                           [&](const auto& entry) { return entry.first == name; });
    if (at == models.end()) at = models.insert(at, {name, 0});
    at->second++;
  }
  std::vector<std::string> words;
  for (const auto& [name, count] : models) words.push_back(std::to_string(count) + " x " + name);
  return words.empty() ? "none" : base::Join(words, ", ");
}

Json GpuJson(const SimGpu& gpu, std::uint32_t index) {
  Json json;
  json["index"] = index;
  json["name"] = gpu.name;
  json["uuid"] = gpu.uuid;
  json["pci"] = Address(gpu);
  json["minor"] = gpu.minor;
  json["memoryBytes"] = gpu.memory_total;
  json["numa"] = gpu.numa_node < 0 ? Json(nullptr) : Json(gpu.numa_node);
  return json;
}

Json MachineJson(const Machine& machine, const SimState& state) {
  Json json;
  json["name"] = machine.name;
  json["description"] = machine.description;
  json["product"] = machine.product_name;
  json["driver"] = state.driver_version[0] ? Json(state.driver_version) : Json(nullptr);
  json["gpus"] = Json::array();
  for (std::uint32_t i = 0; i < state.gpu_count; i++)
    json["gpus"].push_back(GpuJson(state.gpus[i], i));
  return json;
}

std::vector<std::vector<std::string>> GpuRows(const SimState& state) {
  std::vector<std::vector<std::string>> rows = {{"GPU", "MODEL", "MEMORY", "PCI", "NUMA", "UUID"}};
  for (std::uint32_t i = 0; i < state.gpu_count; i++) {
    const SimGpu& gpu = state.gpus[i];
    rows.push_back({std::to_string(i), gpu.name, std::to_string(gpu.memory_total >> 20) + " MiB",
                    Address(gpu), gpu.numa_node < 0 ? "-" : std::to_string(gpu.numa_node),
                    gpu.uuid});
  }
  return rows;
}

void PrintHead(const SimState& state) {
  std::cout << "machine  " << state.machine
            << (state.product_name[0] ? std::string(" (") + state.product_name + ")" : "") << "\n";
  std::cout << "driver   " << (state.driver_version[0] ? state.driver_version : "none") << "\n\n";
  if (state.gpu_count > 0)
    PrintTable(GpuRows(state));
  else
    std::cout << "no GPU\n";
}

std::string HealthOf(const SimGpu& gpu) {
  std::vector<std::string> words;
  if (gpu.removed) words.emplace_back("removed");
  if (gpu.lost) words.emplace_back("lost");
  if (gpu.recovery_action) words.push_back("recovery " + RecoveryActionText(gpu.recovery_action));
  if (const auto errors = gpu.ecc_volatile.count[1][0] + gpu.ecc_volatile.count[1][1])
    words.push_back(std::to_string(errors) + " uncorrected ECC errors");
  if (gpu.remap_pending || gpu.retire_pending) words.emplace_back("remap pending");
  if (gpu.remap_failure) words.emplace_back("remap failure");
  if (gpu.nonsense || gpu.junk_process_samples) words.emplace_back("nonsense");
  return words.empty() ? "ok" : base::Join(words, ", ");
}

std::string DriverOf(const SimState& state) {
  if (!state.driver_version[0]) return "none";
  if (!state.loaded) return std::string(state.driver_version) + ", not loaded";
  if (std::string_view(state.driver_version) != state.library_version)
    return std::string(state.driver_version) + " loaded, library " + state.library_version;
  return state.driver_version;
}

// A reading, or null if the device does not report it.
Json Reading(std::uint32_t value) { return value == SIM_NA ? Json(nullptr) : Json(value); }

// What the GPU does, in the units of the settings, and the current values of its meters.
Json UseJson(const SimState& state, const SimGpu& gpu) {
  const std::uint64_t now = SimNow(&state, NowMicroseconds());
  const auto count = [&](SimMeterIndex meter) {
    return SimMeterAt(&gpu.meters[meter], gpu.metered, now);
  };
  Json json;
  json["utilisation"] = Reading(gpu.use_gpu);
  json["memoryUtilisation"] = Reading(gpu.use_memory);
  json["temperature"] = Reading(gpu.temperature);
  json["powerMilliwatts"] = Reading(gpu.power_draw);
  json["energyMillijoules"] = count(kSimEnergy);
  json["pcie"] = {{"txBytes", count(kSimPcieTx)}, {"rxBytes", count(kSimPcieRx)}};
  json["nvlink"] = {{"txBytes", count(kSimNvlinkTx)}, {"rxBytes", count(kSimNvlinkRx)}};
  return json;
}

Json StatusJson(const SimState& state) {
  Json json;
  json["machine"] = state.machine;
  json["driver"] = {{"version", state.driver_version},
                    {"library", state.library_version},
                    {"loaded", state.loaded != 0}};
  json["clock"] = {{"stands", state.clock_stopped != 0},
                   {"microseconds", SimNow(&state, NowMicroseconds())}};
  json["gpus"] = Json::array();
  for (std::uint32_t i = 0; i < state.gpu_count; i++) {
    Json gpu = GpuJson(state.gpus[i], i);
    gpu["health"] = HealthOf(state.gpus[i]);
    gpu["processes"] = state.gpus[i].process_count;
    gpu["use"] = UseJson(state, state.gpus[i]);
    json["gpus"].push_back(gpu);
  }
  int faults = 0;
  for (const SimFault& fault : state.faults) faults += fault.mode != kSimFaultNone;
  json["callFaults"] = faults;
  return json;
}

// Removes the machine and the programs that run on it.
base::Status Remove(const std::string& root) {
  EndMps(root);
  return RemoveTree(root);
}

}  // namespace

int Fail(const base::Error& error) {
  std::cerr << "penstock-sim: " << error.message() << "\n";
  return error.code() == base::Code::kInvalidArgument ? kUsage : kFailed;
}

void PrintTable(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); i++) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); i++)
      line += row[i] + (i + 1 < row.size() ? std::string(widths[i] - row[i].size() + 2, ' ') : "");
    std::cout << line << "\n";
  }
}

int List(Output output) {
  const auto assets = FindAssets();
  if (!assets.ok()) return Fail(assets.error());
  const auto catalogue = LoadCatalogue(*assets);
  if (!catalogue.ok()) return Fail(catalogue.error());
  const auto names = MachineNames(*assets);
  if (!names.ok()) return Fail(names.error());
  Json json = Json::array();
  std::vector<std::vector<std::string>> rows = {{"MACHINE", "GPUS", "DRIVER"}};
  const auto state = std::make_unique<SimState>();
  for (const std::string& name : *names) {
    const auto machine = LoadMachine(*assets, *catalogue, name);
    if (!machine.ok()) return Fail(machine.error());
    Compile(machine->machine, *catalogue, {}, *state);
    json.push_back(MachineJson(machine->machine, *state));
    rows.push_back(
        {name, Models(*state), state->driver_version[0] ? state->driver_version : "none"});
  }
  if (output == Output::kJson)
    std::cout << json.dump(2) << "\n";
  else
    PrintTable(rows);
  return kOk;
}

int Describe(const std::string& name, Output output) {
  const auto assets = FindAssets();
  if (!assets.ok()) return Fail(assets.error());
  const auto catalogue = LoadCatalogue(*assets);
  if (!catalogue.ok()) return Fail(catalogue.error());
  const auto machine = LoadMachine(*assets, *catalogue, name);
  if (!machine.ok()) return Fail(machine.error());
  const auto state = std::make_unique<SimState>();
  Compile(machine->machine, *catalogue, {}, *state);
  if (output == Output::kYaml)
    std::cout << machine->text;
  else if (output == Output::kJson)
    std::cout << MachineJson(machine->machine, *state).dump(2) << "\n";
  else
    PrintHead(*state);
  return kOk;
}

int Start(const StartOptions& options) {
  if (!options.driver.empty() && !IsDriverVersion(options.driver))
    return Fail(
        {base::Code::kInvalidArgument,
         "--driver " + options.driver + ": is not a driver version; use the form 550.54.15"});
  const auto assets = FindAssets();
  if (!assets.ok()) return Fail(assets.error());
  const auto catalogue = LoadCatalogue(*assets);
  if (!catalogue.ok()) return Fail(catalogue.error());
  const auto machine = LoadMachine(*assets, *catalogue, options.machine);
  if (!machine.ok()) return Fail(machine.error());
  if (options.replace)
    if (const auto removed = Remove(options.root);
        !removed.ok() && removed.error().code() != base::Code::kNotFound)
      return Fail(removed.error());
  const auto control = Control::Start(options.root, *assets, *catalogue, *machine,
                                      {options.driver, options.seed, options.no_driver});
  if (!control.ok()) return Fail(control.error());
  PrintHead(control->state());
  if (!control->tree().character_devices)
    std::cout << "\nnote: device nodes are empty files; only root can create character devices\n";
  std::cout << "\nfiles: " << options.root << "; pass to penstock\n  --driver-root " << options.root
            << " --dev-root " << options.root << " --sysfs-root " << options.root
            << "/sys\nstop with: penstock-sim stop --root " << options.root << "\n";
  return kOk;
}

int Stop(const std::string& root) {
  const auto removed = Remove(root);
  return removed.ok() ? kOk : Fail(removed.error());
}

int ShowStatus(const std::string& root, Output output) {
  const auto file = StateFile::Open(root);
  if (!file.ok()) return Fail(file.error());
  const SimState& state = file->state();
  if (output == Output::kJson) {
    std::cout << StatusJson(state).dump(2) << "\n";
    return kOk;
  }
  std::cout << "machine  " << state.machine << "\ndriver   " << DriverOf(state) << "\n\n";
  std::vector<std::vector<std::string>> rows = {
      {"GPU", "MODEL", "PCI", "USE", "PROCESSES", "HEALTH"}};
  for (std::uint32_t i = 0; i < state.gpu_count; i++) {
    const SimGpu& gpu = state.gpus[i];
    rows.push_back({std::to_string(i), gpu.name, Address(gpu), std::to_string(gpu.use_gpu) + " %",
                    std::to_string(gpu.process_count), HealthOf(gpu)});
  }
  PrintTable(rows);
  int faults = 0;
  for (const SimFault& fault : state.faults) faults += fault.mode != kSimFaultNone;
  if (state.clock_stopped) std::cout << "\nthe clock of the counters is stopped\n";
  if (faults)
    std::cout << "\n" << faults << " fault" << (faults == 1 ? "" : "s") << " of calls active\n";
  return kOk;
}

}  // namespace penstock::sim::cli
