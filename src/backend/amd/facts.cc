#include "backend/amd/facts.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "backend/amd/dialect/kinds.h"
#include "base/core/strings.h"

namespace penstock::backend::amd {
namespace {

using device::Facts;

/// Names where the driver has none, as in virtual machines and on older kernels (ROCm,
/// k8s-device-plugin, amdgpu.ids; device-metrics-exporter, "Known issues"). The second number is
/// that of virtual functions.
struct Model {
  std::uint32_t id, virtual_id;
  const char* name;
};
constexpr std::array kModels{
    Model{0x66a1, 0, "AMD Instinct MI50/MI60"},   Model{0x738c, 0, "AMD Instinct MI100"},
    Model{0x740f, 0x7410, "AMD Instinct MI210"},  Model{0x740c, 0, "AMD Instinct MI250"},
    Model{0x7408, 0, "AMD Instinct MI250X"},      Model{0x74a0, 0, "AMD Instinct MI300A"},
    Model{0x74a1, 0x74b5, "AMD Instinct MI300X"}, Model{0x74a2, 0x74b6, "AMD Instinct MI308X"},
    Model{0x74a8, 0x74bc, "AMD Instinct MI308X"}, Model{0x74a9, 0x74bd, "AMD Instinct MI300X HF"},
    Model{0x74a5, 0x74b9, "AMD Instinct MI325X"}, Model{0x75a0, 0x75b0, "AMD Instinct MI350X"},
    Model{0x75a3, 0x75b3, "AMD Instinct MI355X"},
};

constexpr std::size_t kMaxFact = 128;

std::string ModelOf(const Machine& machine, const AmdGpu& gpu) {
  std::string name = machine.PciFile(gpu.pci, "product_name");
  if (!name.empty() && name.size() <= kMaxFact) return name;
  const std::uint32_t id = gpu.partitions.front().node.device_id;
  for (const Model& model : kModels)
    if (model.id == id || model.virtual_id == id) return model.name;
  char text[32];
  std::snprintf(text, sizeof text, "AMD GPU 1002:%04x", id & 0xffffu);
  return text;
}

/// Not before the memory controller answers: all ones.
base::Bytes Memory(const Machine& machine, const AmdGpu& gpu) {
  constexpr std::uint64_t kMost = 1ull << 50;
  const auto total = base::ParseUint(machine.PciFile(gpu.pci, "mem_info_vram_total"));
  if (total && *total > 0 && *total <= kMost) return {*total};
  base::Bytes sum;
  for (const Partition& partition : gpu.partitions) sum.count += partition.node.memory.count;
  return sum;
}

device::Mode ModeOf(const Machine& machine, const AmdGpu& gpu, const char* name, const char* file,
                    device::ModeScope scope, device::ModeEffect effect) {
  device::Mode mode{.name = name, .scope = scope, .effect = effect};
  mode.current = machine.PciFile(gpu.pci, std::string("current_") + file);
  mode.pending = mode.current;
  for (const std::string& one :
       base::Split(machine.PciFile(gpu.pci, std::string("available_") + file), ','))
    if (const auto word = base::Trim(one); !word.empty() && word != "Not supported")
      mode.available.emplace_back(word);
  return mode;
}

void AddModes(const Machine& machine, const AmdGpu& gpu, Facts& facts) {
  using device::ModeEffect;
  using device::ModeScope;
  for (device::Mode mode : {ModeOf(machine, gpu, kComputePartition, "compute_partition",
                                   ModeScope::kDevice, ModeEffect::kNow),
                            ModeOf(machine, gpu, kMemoryPartition, "memory_partition",
                                   ModeScope::kLinkedDevices, ModeEffect::kAfterDriverReload)})
    if (!mode.current.empty()) facts.modes.push_back(std::move(mode));
}

std::string ModeText(const Facts& facts, const char* name) {
  const auto mode = std::ranges::find(facts.modes, name, &device::Mode::name);
  return mode == facts.modes.end() ? "" : base::ToLower(mode->current);
}

/// How AMD's device plugin ranks a pair (ROCm, k8s-device-plugin,
/// internal/pkg/allocator/device.go): the same GPU weighs 10, another 20; xGMI 10, PCIe 40, other
/// or no link 50; the same NUMA node 10, another 20; it minimizes the sum of all pairs. Here as 100
/// less that weight, in which a pair without a link has what Link::score says. On machines that
/// report no NUMA nodes such a pair has 0, and so all others have 20 less.
int ScoreOf(const AmdGpu& from, const AmdGpu& to, const GpuLink& link) {
  const int gpu = from.id == to.id ? 10 : 20;
  const int kind = link.xgmi ? 10 : 40;
  const int node = from.numa_node == to.numa_node ? 10 : 20;
  return 100 - gpu - kind - node - (from.numa_node || to.numa_node ? 0 : 20);
}

/// A link of `from` or a partition of it to `to` or one of that, which the peer has for its id.
device::Link LinkTo(std::string peer, const AmdGpu& from, const AmdGpu& to, const GpuLink& link) {
  using device::Nearness;
  return {.peer = std::move(peer),
          .nearness = from.id == to.id                 ? Nearness::kBoard
                      : from.numa_node == to.numa_node ? Nearness::kNode
                                                       : Nearness::kSystem,
          .fabric_lanes = link.xgmi ? 1 : 0,
          .score = ScoreOf(from, to, link)};
}

/// The facts that a GPU and its partitions share.
Facts Common(const Machine& machine, const AmdGpu& gpu) {
  const KfdNode& node = gpu.partitions.front().node;
  Facts facts{.vendor = std::string(kVendor), .model = ModelOf(machine, gpu), .pci = gpu.pci};
  facts.numa_node = gpu.numa_node;
  facts.cpu_affinity = machine.PciFile(gpu.pci, "local_cpulist");
  if (facts.cpu_affinity.find_first_not_of("0123456789,-") != std::string::npos)
    facts.cpu_affinity.clear();
  facts.architecture = InstinctArchitecture(node.gfx);
  facts.architecture_version = GfxName(node.gfx);
  char device[8];
  std::snprintf(device, sizeof device, "%04x", node.device_id & 0xffffu);
  facts.details[kDeviceId] = device;
  // The last two are in the board's EEPROM (Linux, amdgpu_fru_eeprom.c).
  for (const auto& [detail, file] : {std::pair("vbios", "vbios_version"),
                                     {kProductNumber, "product_number"},
                                     {kManufacturer, "manufacturer"}})
    if (std::string text = machine.PciFile(gpu.pci, file); !text.empty() && text.size() <= kMaxFact)
      facts.details[detail] = std::move(text);
  if (std::string source = machine.File("/module/amdgpu/srcversion"); !source.empty())
    facts.details[kSourceVersion] = std::move(source);
  return facts;
}

void AddNumbers(Facts& facts, int simds, int units) {
  facts.compute_units = units;
  facts.details[kSimds] = std::to_string(simds);
}

}  // namespace

bool IsDivided(const AmdGpu& gpu, const std::string& compute_mode) {
  return gpu.partitions.size() > 1 || (!compute_mode.empty() && compute_mode != "SPX");
}

Facts FactsOfGpu(const Machine& machine, const std::vector<AmdGpu>& gpus, const AmdGpu& gpu) {
  Facts facts = Common(machine, gpu);
  facts.id = gpu.id;
  facts.index = gpu.index;
  facts.address = ToString(gpu.pci);
  facts.memory = Memory(machine, gpu);
  facts.serial = machine.PciFile(gpu.pci, "serial_number");
  AddModes(machine, gpu, facts);
  int simds = 0, units = 0;
  for (const Partition& partition : gpu.partitions) {
    simds += partition.node.simds;
    units += partition.node.compute_units;
  }
  for (const GpuLink& link : gpu.links)
    if (const AmdGpu& to = gpus[link.to]; to.id != gpu.id)
      facts.links.push_back(LinkTo(to.id, gpu, to, link));
  AddNumbers(facts, simds, units);
  if (IsDivided(gpu, machine.ComputeMode(gpu))) {
    for (const Partition& partition : gpu.partitions)
      facts.parts.push_back(PartAddress(gpu, partition.xcp));
    return facts;
  }
  facts.details[kNumber] = std::to_string(gpu.partitions.front().number);
  facts.files = machine.DrmFiles(gpu.partitions.front().node.render_minor);
  return facts;
}

Facts FactsOfPart(const Machine& machine, const std::vector<AmdGpu>& gpus, const AmdGpu& gpu,
                  const Partition& partition) {
  Facts facts = Common(machine, gpu);
  facts.id = PartId(gpu, partition.xcp);
  facts.number = std::to_string(gpu.index) + ":" + std::to_string(partition.xcp);
  facts.address = PartAddress(gpu, partition.xcp);
  facts.memory = partition.node.memory;
  facts.parent = gpu.id;
  facts.part = std::to_string(partition.xcp);
  facts.files = machine.DrmFiles(partition.node.render_minor);
  facts.details[kNumber] = std::to_string(partition.number);
  AddNumbers(facts, partition.node.simds, partition.node.compute_units);
  AddModes(machine, gpu, facts);
  // "cpx_nps4", as AMD's device plugin calls a resource.
  facts.profile = ModeText(facts, kComputePartition);
  if (const std::string memory = ModeText(facts, kMemoryPartition); !memory.empty())
    facts.profile += "_" + memory;
  facts.modes.clear();  // of the GPU
  // Of all partitions of a GPU alike, also to the others of its own.
  for (const GpuLink& link : gpu.links)
    facts.links.push_back(LinkTo(gpus[link.to].id, gpu, gpus[link.to], link));
  return facts;
}

}  // namespace penstock::backend::amd
