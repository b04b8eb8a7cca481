// Each fact is one call; a failed call leaves its fact empty.
#include "backend/nvidia/facts.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "backend/nvidia/dialect/kinds.h"
#include "backend/nvidia/nvml_device.h"
#include "base/core/strings.h"

namespace penstock::backend::nvidia {
namespace {

using device::Facts;

template <typename F>
std::string Text(const F& function, abi::Device device, unsigned length) {
  std::array<char, 128> buffer{};  // longer than the longest text, so that it always ends with 0
  if (function(device, buffer.data(), std::min<unsigned>(length, buffer.size() - 1)) !=
      abi::kSuccess)
    return "";
  return buffer.data();
}

std::string Hex(unsigned number) {
  std::array<char, 16> buffer{};
  std::snprintf(buffer.data(), buffer.size(), "0x%04x", number);
  return buffer.data();
}

/// nvmlBrandType_t. 4 and values from 16 on are not reported.
std::string Brand(unsigned brand) {
  constexpr std::array<std::string_view, 15> kBrands{
      "",           "Quadro",     "Tesla",          "NVS",
      "",           "GeForce",    "Titan",          "NVIDIA vApps",
      "NVIDIA vPC", "NVIDIA vCS", "NVIDIA RTX vWS", "NVIDIA Cloud Gaming",
      "Quadro RTX", "NVIDIA RTX", "NVIDIA"};
  return brand < kBrands.size() ? std::string(kBrands[brand]) : "";
}

void AddDetail(Facts& facts, const char* name, std::string value) {
  if (!value.empty()) facts.details[name] = std::move(value);
}

std::optional<unsigned> Number(const Function<abi::Device, unsigned*>& function,
                               abi::Device device) {
  unsigned number = 0;
  if (function(device, &number) != abi::kSuccess) return std::nullopt;
  return number;
}

void AddPci(const Nvml& nvml, const MachineFiles& files, abi::Device device, Facts& facts) {
  abi::PciInfo pci{};
  if (nvml->pci(device, &pci) != abi::kSuccess || pci.bus > 0xff || pci.device > 0x1f) return;
  facts.pci = device::PciAddress{pci.domain, pci.bus, pci.device, 0};
  AddDetail(facts, "pci.vendor-id", Hex(pci.device_id & 0xffff));
  AddDetail(facts, "pci.device-id", Hex(pci.device_id >> 16));
  if (pci.subsystem_id != 0) {
    AddDetail(facts, "pci.subsystem-vendor-id", Hex(pci.subsystem_id & 0xffff));
    AddDetail(facts, "pci.subsystem-device-id", Hex(pci.subsystem_id >> 16));
  }
  AddDetail(facts, kPciClass, files.PciClass(*facts.pci));
  facts.numa_node = files.NumaNode(*facts.pci);
  facts.cpu_affinity = files.NearCpus(*facts.pci);
}

void AddMemory(const Nvml& nvml, abi::Device device, Facts& facts) {
  abi::MemoryV2 memory{};
  memory.version = abi::kMemoryV2;
  if (nvml->memory_v2(device, &memory) == abi::kSuccess) {
    facts.memory = base::Bytes{memory.total};
    return;
  }
  abi::Memory old{};
  if (nvml->memory(device, &old) == abi::kSuccess) facts.memory = base::Bytes{old.total};
}

void AddArchitecture(const Nvml& nvml, abi::Device device, Facts& facts) {
  int major = 0, minor = 0;
  if (nvml->compute_capability(device, &major, &minor) != abi::kSuccess) return;
  facts.architecture_version = std::to_string(major) + "." + std::to_string(minor);
  facts.architecture = Architecture(major, minor);
}

/// A call that fails although the GPU may have MIG leaves the mode unknown, which is an error:
/// taken for a GPU without MIG, it would be offered whole.
base::Status AddMigMode(const Nvml& nvml, abi::Device device, Facts& facts) {
  unsigned current = 0, pending = 0;
  if (const abi::Return answer = nvml->mig_mode(device, &current, &pending);
      answer != abi::kSuccess)
    return IsPermanent(answer) ? base::Status() : ToError(answer, nvml->mig_mode.name);
  const auto name = [](unsigned mode) { return std::string(mode == 0 ? "disabled" : "enabled"); };
  // MIG user guide, "Enable MIG mode": Hopper and later need no reset.
  const bool needs_reset = facts.architecture == "ampere" || facts.architecture.empty();
  facts.modes.push_back({"mig",
                         name(current),
                         name(pending),
                         {"disabled", "enabled"},
                         device::ModeScope::kDevice,
                         needs_reset ? device::ModeEffect::kAfterReset : device::ModeEffect::kNow});
  if (current != 0) facts.withheld = "MIG mode is enabled and there are no MIG devices";
  return {};
}

void AddInforom(const Nvml& nvml, abi::Device device, Facts& facts) {
  for (const auto& [name, object] :
       {std::pair(kInforomOem, abi::kInforomOem), std::pair(kInforomEcc, abi::kInforomEcc),
        std::pair(kInforomPower, abi::kInforomPower)}) {
    const auto version = [&nvml, which = object](abi::Device of, char* buffer, unsigned length) {
      return nvml->inforom(of, which, buffer, length);
    };
    AddDetail(facts, name, Text(version, device, abi::kInforomLength));
  }
  AddDetail(facts, kInforomImage, Text(nvml->inforom_image, device, abi::kInforomLength));
}

void AddDetails(const Nvml& nvml, abi::Device device, Facts& facts) {
  AddDetail(facts, "vbios", Text(nvml->vbios, device, abi::kVbiosLength));
  AddDetail(facts, "part-number", Text(nvml->part_number, device, abi::kPartNumberLength));
  AddInforom(nvml, device, facts);
  if (const auto brand = Number(nvml->brand, device)) AddDetail(facts, "brand", Brand(*brand));
  if (const auto generation = Number(nvml->max_pcie_generation, device))
    AddDetail(facts, "pcie.generation", std::to_string(*generation));
  if (const auto width = Number(nvml->max_pcie_width, device))
    AddDetail(facts, "pcie.width", std::to_string(*width));
}

/// nvmlGpuVirtualizationMode_t
void AddVirtualization(const Nvml& nvml, abi::Device device, Facts& facts) {
  constexpr std::array<const char*, 5> kModes{"none", "passthrough", "vgpu", "host-vgpu",
                                              "host-vsga"};
  const auto mode = Number(nvml->virtualization_mode, device);
  if (mode && *mode < kModes.size()) AddDetail(facts, kVirtualization, kModes[*mode]);
}

/// nvmlGpuFabricState_t: 0 means that the GPU has no fabric; the driver reports 1 or 2 until the
/// fabric manager has configured the switches.
template <typename Info>
std::string FabricState(const Info& info) {
  if (info.state == 0 || info.state > abi::kFabricCompleted) return "";
  if (info.state < abi::kFabricCompleted) return kFabricJoining;
  return info.status == abi::kSuccess
             ? kFabricJoined
             : "nvmlReturn_t " + std::to_string(static_cast<unsigned>(info.status));
}

template <typename Info>
void AddFabric(const Info& info, Facts& facts) {
  AddDetail(facts, kFabricState, FabricState(info));
  if (info.state != abi::kFabricCompleted || info.status != abi::kSuccess) return;
  std::string uuid;
  bool zero = true;
  for (std::size_t i = 0; i < sizeof info.cluster_uuid; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) uuid += '-';
    std::array<char, 4> digits{};
    std::snprintf(digits.data(), digits.size(), "%02x", info.cluster_uuid[i]);
    uuid += digits.data();
    zero = zero && info.cluster_uuid[i] == 0;
  }
  // A fabric within one node has the zero UUID: the node is in no cluster.
  if (zero) return;
  facts.details[kFabricCluster] = uuid;
  facts.details[kFabricClique] = std::to_string(info.clique);
}

void AddFabric(const Nvml& nvml, abi::Device device, Facts& facts) {
  abi::FabricInfo info{};
  if (nvml->fabric(device, &info) == abi::kSuccess) return AddFabric(info, facts);
  abi::FabricInfoV2 newer{};
  newer.version = abi::kFabricInfoV2;
  if (nvml->fabric_v2(device, &newer) == abi::kSuccess) AddFabric(newer, facts);
}

device::Nearness ToNearness(unsigned level) {
  switch (level) {
    case abi::kTopologyInternal: return device::Nearness::kBoard;
    case abi::kTopologySingle: return device::Nearness::kPciSwitch;
    case abi::kTopologyMultiple: return device::Nearness::kPciSwitches;
    case abi::kTopologyHostBridge: return device::Nearness::kHostBridge;
    case abi::kTopologyNode: return device::Nearness::kNode;
    case abi::kTopologySystem: return device::Nearness::kSystem;
    default: return device::Nearness::kUnknown;
  }
}

}  // namespace

bool IsDeviceLost(abi::Return code) {
  return code == abi::kGpuIsLost || code == abi::kResetRequired || code == abi::kUnknown;
}

bool IsDriverGone(abi::Return code) {
  return code == abi::kUninitialized || code == abi::kDriverNotLoaded ||
         code == abi::kLibRmVersionMismatch;
}

std::string Architecture(int major, int minor) {
  switch (major) {
    case 1: return "tesla";
    case 2: return "fermi";
    case 3: return "kepler";
    case 5: return "maxwell";
    case 6: return "pascal";
    case 7: return minor < 5 ? "volta" : "turing";
    case 8: return minor < 9 ? "ampere" : "ada-lovelace";
    case 9: return "hopper";
    case 10:
    case 12: return "blackwell";
    case 13: return "rubin";
    default: return "";
  }
}

base::Result<Facts> GatherFacts(const Nvml& nvml, const MachineFiles& files, abi::Device device,
                                const std::string& address) {
  Facts facts;
  facts.vendor = kVendor;
  facts.address = address;
  facts.index = static_cast<int>(base::ParseInt(address).value_or(-1));

  std::array<char, abi::kUuidLength + 1> uuid{};
  const abi::Return answer = nvml->uuid(device, uuid.data(), abi::kUuidLength);
  if (IsDriverGone(answer))
    return Error(Code::kUnavailable,
                 "the NVIDIA driver is gone: " + ToError(answer, nvml->uuid.name).message());
  if (IsDeviceLost(answer))
    return Error(Code::kDataLoss, "GPU " + address + " does not answer: " +
                                      ToError(answer, nvml->uuid.name).message());
  if (answer == abi::kSuccess) facts.id = uuid.data();
  AddPci(nvml, files, device, facts);
  if (facts.id.empty() && facts.pci) facts.id = ToString(*facts.pci);
  if (facts.id.empty())
    return Error(Code::kDataLoss, "GPU " + address + " reports neither a UUID nor a PCI address");

  facts.model = Text(nvml->name, device, abi::kNameLength);
  facts.serial = Text(nvml->serial, device, abi::kSerialLength);
  AddMemory(nvml, device, facts);
  AddArchitecture(nvml, device, facts);
  if (const base::Status read = AddMigMode(nvml, device, facts); !read.ok())
    return Error(Code::kDataLoss, "GPU " + address + " does not say whether it is in MIG mode: " +
                                      read.error().message());
  AddDetails(nvml, device, facts);
  AddVirtualization(nvml, device, facts);
  AddFabric(nvml, device, facts);
  if (const auto minor = Number(nvml->minor, device)) facts.files.push_back(files.GpuFile(*minor));
  if (facts.pci)
    for (device::DeviceFile& file : files.GraphicsFiles(*facts.pci))
      facts.files.push_back(std::move(file));
  return facts;
}

base::Result<std::string> Changeable(const Nvml& nvml, abi::Device device, Mig& mig) {
  Facts facts;
  TRY(AddMigMode(nvml, device, facts));
  AddFabric(nvml, device, facts);
  std::string text;
  for (const device::Mode& mode : facts.modes)
    text += mode.name + "=" + mode.current + "," + mode.pending + ";";
  mig.instances.clear();
  mig.devices.clear();
  if (!facts.withheld.empty()) TRY(ReadMigParts(nvml, device, mig));
  // A part that was made again may have the UUID and number of another one before.
  const auto add = [&text](auto... numbers) { ((text += std::to_string(numbers) + ","), ...); };
  for (const GpuInstance& one : mig.instances) {
    text += one.profile + ":";
    add(one.id, one.placement.start, one.placement.size);
  }
  for (const MigDevice& one : mig.devices) {
    text += one.uuid + ":";
    add(one.index, one.gpu_instance, one.compute_instance, one.attributes.gpu_slices,
        one.attributes.compute_slices, one.attributes.memory_mib,
        one.placement ? one.placement->start : -1);
  }
  for (const auto& [name, value] : facts.details) text += name + "=" + value + ";";
  return text;
}

Lanes CountLanes(const Nvml& nvml, const MachineFiles& files, abi::Device device) {
  Lanes lanes;
  for (unsigned link = 0; link < abi::kMaxNvLinks; ++link) {
    unsigned up = 0;
    const abi::Return answer = nvml->nvlink_state(device, link, &up);
    if (answer == abi::kNotSupported || answer == abi::kInvalidArgument)
      break;  // no NVLinks, or no more of them
    if (answer != abi::kSuccess || up == 0) continue;
    unsigned type = abi::kNvLinkToGpu;
    const bool typed = nvml->nvlink_remote_type(device, link, &type) == abi::kSuccess;
    abi::PciInfo pci{};
    const bool addressed = nvml->nvlink_remote_pci(device, link, &pci) == abi::kSuccess;
    const device::PciAddress remote{pci.domain, pci.bus, pci.device, 0};
    // Drivers before 470 do not report the type; their switches are PCI functions.
    if (typed ? type == abi::kNvLinkToSwitch : addressed && files.IsSwitch(remote)) {
      ++lanes.to_switches;
    } else if (addressed) {
      ++lanes.direct[remote];
    }
  }
  return lanes;
}

std::vector<device::Link> GatherLinks(const Nvml& nvml, const Gpu& gpu,
                                      const std::map<std::string, Gpu>& gpus) {
  std::vector<device::Link> links;
  for (const auto& [address, peer] : gpus) {
    if (peer.id == gpu.id) continue;
    unsigned level = ~0u;
    const bool known = nvml->common_ancestor(gpu.handle, peer.handle, &level) == abi::kSuccess;
    device::Link link{peer.id, known ? ToNearness(level) : device::Nearness::kUnknown,
                      std::min(gpu.lanes.to_switches, peer.lanes.to_switches)};
    if (peer.pci)
      if (const auto direct = gpu.lanes.direct.find(*peer.pci); direct != gpu.lanes.direct.end())
        link.fabric_lanes += direct->second;
    links.push_back(std::move(link));
  }
  return links;
}

}  // namespace penstock::backend::nvidia
