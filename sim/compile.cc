#include "sim/compile.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <iterator>

#include "base/core/strings.h"

namespace penstock::sim {
namespace {

constexpr std::uint64_t kMiB = 1 << 20;

// NVML's levels of topology.
enum Level : std::uint8_t {
  kInternal = 0,
  kSingle = 10,
  kMultiple = 20,
  kHostBridge = 30,
  kNode = 40,
  kSystem = 50
};

template <std::size_t N>
void Put(char (&field)[N], std::string_view text) {
  std::memset(field, 0, N);
  std::memcpy(field, text.data(), std::min(text.size(), N - 1));
}

// SplitMix64 seeded from the text: the same machine always has the same UUIDs.
class Stream {
 public:
  explicit Stream(std::string_view seed) {
    for (const char c : seed) state_ = (state_ ^ static_cast<unsigned char>(c)) * 1099511628211ull;
  }
  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_ = 14695981039346656037ull;
};

std::string MakeUuid(Stream& stream) {
  const std::uint64_t a = stream.Next(), b = stream.Next();
  char text[64];
  std::snprintf(text, sizeof text, "GPU-%08x-%04x-%04x-%04x-%012llx",
                static_cast<unsigned>(a >> 32), static_cast<unsigned>(a >> 16 & 0xffff),
                static_cast<unsigned>(a & 0xffff), static_cast<unsigned>(b >> 48),
                static_cast<unsigned long long>(b & 0xffffffffffffull));
  return text;
}

std::uint32_t BrandNumber(std::string_view brand) {
  if (brand == "tesla") return 2;
  if (brand == "geforce") return 5;
  return 14;
}

std::uint32_t ArchitectureNumber(std::string_view name) {
  constexpr std::string_view kNames[] = {"volta", "turing", "ampere", "ada", "hopper", "blackwell"};
  return 5 + static_cast<std::uint32_t>(std::find(std::begin(kNames), std::end(kNames), name) -
                                        std::begin(kNames));
}

// Returns the CUDA version that a driver branch ships.
std::uint32_t CudaVersion(std::uint32_t branch) {
  struct Step {
    std::uint32_t branch, cuda;
  };
  constexpr Step kSteps[] = {{610, 13030}, {595, 13020}, {590, 13010}, {580, 13000}, {575, 12090},
                             {570, 12080}, {565, 12070}, {560, 12060}, {555, 12050}, {550, 12040},
                             {545, 12030}, {535, 12020}, {530, 12010}, {525, 12000}, {520, 11080},
                             {515, 11070}, {510, 11060}, {495, 11050}, {470, 11040}, {465, 11030},
                             {460, 11020}, {455, 11010}, {450, 11000}};
  for (const Step& step : kSteps)
    if (branch >= step.branch) return step.cuda;
  return 10020;
}

bool HasSwitches(const Machine& machine) {
  return !machine.nvswitches.empty() || machine.hidden_nvswitches;
}

void SetIdentity(const Machine& machine, const MachineGpu& from, const Model& model,
                 const CompileOptions& options, std::uint32_t index, SimGpu& gpu) {
  Stream stream(machine.name + "/" + options.seed + "/" + ToString(from.pci));
  const std::string uuid = MakeUuid(stream);
  char serial[32];
  std::snprintf(serial, sizeof serial, "%013llu",
                static_cast<unsigned long long>(1320000000000ull + stream.Next() % 9999999999ull));
  Put(gpu.uuid, from.uuid.empty() ? uuid : from.uuid);
  if (model.brand != "geforce") Put(gpu.serial, from.serial.empty() ? serial : from.serial);
  Put(gpu.vbios, model.vbios);
  Put(gpu.part_number, model.part_number);
  Put(gpu.inforom_image, model.inforom);
  gpu.domain = from.pci.domain;
  gpu.bus = from.pci.bus;
  gpu.device = from.pci.device;
  gpu.pci_id = model.pci_id << 16 | 0x10de;
  gpu.subsystem_id = model.subsystem_id << 16 | model.subsystem_vendor;
  gpu.pci_class = model.pci_class;
  gpu.minor = from.minor ? static_cast<std::uint32_t>(*from.minor) : index;
  gpu.module_id = HasSwitches(machine) ? index + 1 : 1;
  gpu.architecture = ArchitectureNumber(model.architecture);
  gpu.cc_major = static_cast<std::uint32_t>(model.cc_major);
  gpu.cc_minor = static_cast<std::uint32_t>(model.cc_minor);
  gpu.multiprocessors = model.multiprocessors;
  gpu.cores = model.multiprocessors * model.cores_per_multiprocessor;
  gpu.memory_bus_bits = model.bus_bits;
  gpu.encoders = model.encoders;
  gpu.decoders = model.decoders;
  gpu.jpegs = model.jpegs;
  gpu.ofas = model.ofas;
  gpu.numa_node = from.numa;
  if (from.numa >= 0)
    Put(gpu.cpu_list, machine.numa.at(from.numa));
  else if (machine.numa.size() == 1)
    Put(gpu.cpu_list, machine.numa.begin()->second);
}

void SetReadings(const Model& model, SimGpu& gpu) {
  gpu.bar1_total = model.bar1 * kMiB;
  gpu.bar1_used = kMiB;
  gpu.pcie_gen_max = gpu.pcie_gen_host = model.pcie_generation;
  gpu.pcie_gen_current = gpu.pcie_gen_idle = model.pcie_idle_generation;
  gpu.pcie_width = gpu.pcie_width_max = model.pcie_width;
  gpu.power_draw = gpu.power_idle = model.power_idle * 1000;
  gpu.power_limit = gpu.power_default = model.power_default * 1000;
  gpu.power_min = model.power_min * 1000;
  gpu.power_max = model.power_max * 1000;
  gpu.temperature = model.temperature_idle;
  gpu.memory_temperature = model.temperature_memory.value_or(SIM_NA);
  gpu.limits_are_margins = model.limits_are_margins;
  gpu.limit_shutdown = model.limit_shutdown;
  gpu.limit_slowdown = model.limit_slowdown;
  gpu.limit_max = model.limit_max;
  gpu.limit_memory = model.limit_memory;
  gpu.clock_sm = gpu.clock_sm_idle = model.clock_idle_sm;
  gpu.clock_memory = gpu.clock_memory_idle = model.clock_idle_memory;
  gpu.clock_video = model.clock_video / 2;
  gpu.clock_sm_max = model.clock_sm;
  gpu.clock_memory_max = model.clock_memory;
  gpu.clock_video_max = model.clock_video;
  gpu.clock_app = model.clock_application.value_or(SIM_NA);
  gpu.clock_event_reasons = 1;  // idle
  gpu.pstate = gpu.pstate_idle = model.idle_state;
  gpu.fans = model.fans;
  gpu.fan_percent = model.fans ? model.fan_percent : SIM_NA;
  if (gpu.architecture < 6) gpu.use_jpeg = gpu.use_ofa = SIM_NA;
}

// Hides from a vGPU's guest what belongs to the board.
void HideFromGuest(SimGpu& gpu) {
  for (auto field : {&SimGpu::power_draw, &SimGpu::power_limit, &SimGpu::power_default,
                     &SimGpu::power_min, &SimGpu::power_max, &SimGpu::temperature,
                     &SimGpu::memory_temperature, &SimGpu::fan_percent})
    gpu.*field = SIM_NA;
  gpu.has_remapper = gpu.has_retirement = 0;
}

void SetModes(const Machine& machine, const MachineGpu& from, const Model& model, SimGpu& gpu) {
  gpu.persistence = machine.persistence;
  gpu.ecc_current = gpu.ecc_pending = model.ecc ? 1 : SIM_NA;
  gpu.mig_max = model.mig.devices;
  gpu.mig_current = gpu.mig_pending = model.mig.devices ? 0 : SIM_NA;
  gpu.has_remapper = model.remapper_banks > 0;
  gpu.remapper_banks = model.remapper_banks;
  gpu.has_retirement = model.page_retirement;
  gpu.virtualization = from.vgpu_profile.empty() ? 0 : 2;
  Put(gpu.vgpu_host_driver, from.vgpu_host_driver);
  Put(gpu.vgpu_host_branch, from.vgpu_host_branch);
  gpu.fabric = model.fabric && HasSwitches(machine) ? 3 : SIM_NA;
  gpu.vgpu_licensed = gpu.virtualization ? 1 : SIM_NA;
  if (gpu.virtualization) HideFromGuest(gpu);
}

// Spreads the links evenly over the NVSwitches; H100 boards (18 links, 4 switches) have 4, 5, 5, 4.
// If there are more switches than links, the switches are on several boards, and a GPU is linked to
// those of its own board.
void LinkToSwitches(const Machine& machine, const Model& model, std::size_t index, SimGpu& gpu) {
  const std::size_t switches = machine.nvswitches.size();
  for (std::uint32_t link = 0; link < model.nvlink_count; link++) {
    if (machine.hidden_nvswitches) {
      gpu.nvlinks[link] = {.active = 1, .remote_type = 2, .remote_link = link};
      continue;
    }
    std::size_t to = link * switches / model.nvlink_count;
    if (const std::size_t boards = switches / model.nvlink_count; boards > 1)
      to = index * boards / machine.gpus.size() * model.nvlink_count + link;
    if (model.nvlink_count == 18 && switches == 4)
      to = link < 4 ? 0 : link < 9 ? 1 : link < 14 ? 2 : 3;
    const PciAddress& address = machine.nvswitches[to];
    gpu.nvlinks[link] = {1,
                         2,
                         address.domain,
                         address.bus,
                         address.device,
                         machine.nvswitch_pci_id << 16 | 0x10de,
                         0x10de,
                         link,
                         {}};
  }
}

std::uint8_t LevelBetween(const MachineGpu& a, const MachineGpu& b) {
  if (a.pcie_switch && a.pcie_switch == b.pcie_switch) return kMultiple;
  if (a.numa >= 0 && a.numa == b.numa) return kNode;
  return a.numa < 0 && b.numa < 0 ? kHostBridge : kSystem;
}

void SetLinks(const Machine& machine, const Catalogue& catalogue, SimState& state) {
  for (std::size_t i = 0; i < machine.gpus.size(); i++) {
    const Model& model = catalogue.at(machine.gpus[i].model);
    SimGpu& gpu = state.gpus[i];
    gpu.nvlink_count = model.nvlink_count;
    gpu.nvlink_version = model.nvlink_version;
    gpu.nvlink_mbps = model.nvlink_mbps;
    const bool switched = HasSwitches(machine) && !machine.gpus[i].nvlinks_down;
    if (switched) LinkToSwitches(machine, model, i, gpu);
    for (std::size_t j = 0; j < machine.gpus.size(); j++) {
      gpu.topology[j] =
          i == j ? std::uint8_t{kInternal} : LevelBetween(machine.gpus[i], machine.gpus[j]);
      if (i != j && switched && !machine.gpus[j].nvlinks_down)
        gpu.nvlink_to[j] = static_cast<std::uint8_t>(model.nvlink_count);
    }
  }
}

}  // namespace

std::uint32_t DriverBranch(std::string_view version) {
  return static_cast<std::uint32_t>(
      base::ParseUint(version.substr(0, version.find('.'))).value_or(0));
}

void ApplyDriver(const Machine& machine, const Catalogue& catalogue, std::string_view version,
                 SimState& state) {
  Put(state.driver_version, version);
  Put(state.library_version, version);
  state.driver_branch = DriverBranch(version);
  state.cuda_version = version.empty() ? 0 : CudaVersion(state.driver_branch);
  for (std::size_t i = 0; i < machine.gpus.size(); i++) {
    const Model& model = catalogue.at(machine.gpus[i].model);
    SimGpu& gpu = state.gpus[i];
    const std::string& profile = machine.gpus[i].vgpu_profile;
    Put(gpu.name, !profile.empty()             ? profile
                  : state.driver_branch >= 470 ? model.name
                                               : model.old_name);
    gpu.brand = BrandNumber(state.driver_branch >= 470 ? model.brand : model.old_brand);
    // Before 510 the total excluded the reserved part.
    gpu.memory_total = (state.driver_branch >= 510 ? model.memory_total : model.memory_old) * kMiB;
    gpu.memory_reserved = state.driver_branch >= 510 ? model.memory_reserved * kMiB : 0;
    ApplyProfiles(model.mig, state.driver_branch, gpu);
    gpu.gsp_mode =
        gpu.architecture < 6 ? SIM_NA : model.gsp_since && state.driver_branch >= *model.gsp_since;
  }
}

void Compile(const Machine& machine, const Catalogue& catalogue, const CompileOptions& options,
             SimState& state) {
  state = SimState{};
  state.magic = kSimMagic;
  state.layout = kSimLayout;
  state.size = sizeof(SimState);
  Put(state.machine, machine.name);
  Put(state.product_name, machine.product_name);
  Put(state.product_vendor, machine.product_vendor);
  state.uvm_major = 510;
  state.caps_major = 511;
  state.nvswitch_major = 509;
  state.imex_major = 508;
  state.imex_channels = machine.imex_channels;
  for (const auto& [number, cpus] : machine.numa) {
    SimNode& node = state.nodes[state.node_count++];
    node.number = number;
    Put(node.cpu_list, cpus);
  }
  state.gpu_count = static_cast<std::uint32_t>(machine.gpus.size());
  for (std::size_t i = 0; i < machine.gpus.size(); i++) {
    const Model& model = catalogue.at(machine.gpus[i].model);
    SetIdentity(machine, machine.gpus[i], model, options, static_cast<std::uint32_t>(i),
                state.gpus[i]);
    SetReadings(model, state.gpus[i]);
    SetModes(machine, machine.gpus[i], model, state.gpus[i]);
  }
  SetLinks(machine, catalogue, state);
  const std::string driver = options.no_driver        ? ""
                             : options.driver.empty() ? machine.driver
                                                      : options.driver;
  ApplyDriver(machine, catalogue, driver, state);
  state.loaded = !driver.empty();
  state.load_count = 1;
}

}  // namespace penstock::sim
