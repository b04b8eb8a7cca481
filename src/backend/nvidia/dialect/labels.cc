// One function per group of labels. Keys and derivations are those of GPU Feature Discovery
// (internal/lm of k8s-device-plugin) except where stated.
#include "backend/nvidia/dialect/labels.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <tuple>
#include <vector>

#include "backend/nvidia/dialect/kinds.h"
#include "base/core/strings.h"
#include "device/sharing.h"

namespace penstock::backend::nvidia {
namespace {

using device::Facts;
using device::LabelFacts;

using Set = std::map<std::string, std::string>;
using DeviceList = std::vector<const Facts*>;
using Shares = std::map<const Facts*, device::LabelShare>;

constexpr std::string_view kPrefix = "nvidia.com/";

// A label's name has at most 63 characters (Kubernetes, "Labels and Selectors"); "gpu.present."
// decides how much of a model name is kept.
constexpr std::size_t kMaxName = 63,
                      kMaxModelKey = kMaxName - std::string_view("gpu.present.").size();

bool IsAlphanumeric(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

void Add(Set& labels, std::string_view key, std::string value) {
  labels[std::string(kPrefix) + std::string(key)] = std::move(value);
}

std::string Detail(const Facts& gpu, const char* name) {
  const auto found = gpu.details.find(name);
  return found == gpu.details.end() ? "" : found->second;
}

const device::Mode* MigMode(const Facts& gpu) {
  const auto found =
      std::ranges::find_if(gpu.modes, [](const device::Mode& mode) { return mode.name == "mig"; });
  return found == gpu.modes.end() ? nullptr : &*found;
}

bool MigEnabled(const Facts& gpu) {
  const device::Mode* mig = MigMode(gpu);
  return mig != nullptr && mig->current == "enabled";
}

/// 535.183.01 has three parts, 595.80 two; the revision is then empty, as in GPU Feature Discovery.
/// Any other form gets only the full label.
void AddDriver(Set& labels, const device::Driver& driver) {
  if (driver.version.empty()) return;
  Add(labels, "cuda.driver-version.full", driver.version);
  auto parts = base::Split(driver.version, '.');
  if (parts.size() < 2 || parts.size() > 3) return;
  parts.resize(3);
  for (const auto& [place, old_name, name] :
       {std::tuple{0u, "major", "major"}, {1u, "minor", "minor"}, {2u, "rev", "revision"}}) {
    Add(labels, std::string("cuda.driver.") + old_name, parts[place]);
    Add(labels, std::string("cuda.driver-version.") + name, parts[place]);
  }
}

void AddRuntime(Set& labels, const device::Driver& driver) {
  const auto parts = base::Split(driver.runtime_version, '.');
  if (parts.size() != 2) return;
  for (const char* family : {"cuda.runtime.", "cuda.runtime-version."}) {
    Add(labels, std::string(family) + "major", parts[0]);
    Add(labels, std::string(family) + "minor", parts[1]);
  }
  Add(labels, "cuda.runtime-version.full", driver.runtime_version);
}

std::string Mebibytes(const Facts& gpu) {
  return gpu.memory.mebibytes() == 0 ? "" : std::to_string(gpu.memory.mebibytes());
}

/// The GPUs of the most frequent model; on a tie, of the model that comes first by index.
DeviceList MajorityModel(const DeviceList& gpus) {
  std::map<std::string, DeviceList> models;
  for (const Facts* gpu : gpus) models[gpu->model].push_back(gpu);
  DeviceList best;
  for (const Facts* gpu : gpus)
    if (const DeviceList& same = models[gpu->model]; same.size() > best.size()) best = same;
  return best;
}

/// How the GPUs of one model are shared, in the words of labels.
struct ModelShare {
  int replicas = 0;
  std::string strategy = "none";
  bool renamed = false;
  std::string isolation;  ///< empty: unknown
};

/// The weaker of the two; an unknown isolation is the weakest.
std::string Weaker(const std::string& a, const std::string& b) {
  using device::Isolation;
  static constexpr std::array kFromWeak = {Isolation::kNone, Isolation::kMemoryPerProcess,
                                           Isolation::kMemory, Isolation::kMemoryCompute,
                                           Isolation::kHardware};
  const auto rank = [](const std::string& name) {
    const auto found =
        std::ranges::find_if(kFromWeak, [&](Isolation one) { return name == ToString(one); });
    return found == kFromWeak.end() ? -1 : static_cast<int>(found - kFromWeak.begin());
  };
  return rank(a) <= rank(b) ? a : b;
}

/// If the GPUs are shared differently, the most frequent sharing is reported; on a tie, that of the
/// GPU that comes first by index. The isolation is the weakest of all, so that a pod that selects
/// on it never gets less. GPUs in MIG mode are not shared as a whole, so only the others count; if
/// all are in MIG mode, there are no replicas.
ModelShare ShareOf(const DeviceList& same, const Shares& shares) {
  using Division = std::tuple<device::Shape, bool>;
  std::map<Division, int> counts;
  ModelShare model;
  int most = 0;
  for (const Facts* gpu : same)
    if (!MigEnabled(*gpu)) ++counts[{shares.at(gpu).shape, shares.at(gpu).renamed}];
  for (const Facts* gpu : same) {
    if (MigEnabled(*gpu)) continue;
    const device::LabelShare& share = shares.at(gpu);
    model.isolation = most == 0 ? share.isolation : Weaker(model.isolation, share.isolation);
    const int count = counts[{share.shape, share.renamed}];
    if (count <= most) continue;
    most = count;
    model.replicas = share.shape.shares;
    model.strategy = ToString(share.shape.sharing);
    model.renamed = share.renamed;
  }
  return model;
}

/// `model` is empty for labels of the whole node. A label that is too long loses the end of the
/// model.
void AddShare(Set& labels, const ModelShare& share, const std::string& model) {
  const auto add = [&](const std::string& key, const std::string& value) {
    std::string name = (model.empty() ? key : key + "." + model).substr(0, kMaxName);
    while (!IsAlphanumeric(name.back())) name.pop_back();
    Add(labels, name, value);
  };
  add("gpu.replicas", std::to_string(share.replicas));
  add("gpu.sharing-strategy", share.strategy);
  if (!share.isolation.empty()) add("gpu.isolation", share.isolation);
}

void AddMajority(Set& labels, const DeviceList& majority, const Shares& shares) {
  const Facts& gpu = *majority.front();
  const ModelShare share = ShareOf(majority, shares);
  Add(labels, "gpu.product",
      Sanitise(gpu.model) + (share.replicas > 1 && !share.renamed ? "-SHARED" : ""));
  Add(labels, "gpu.count", std::to_string(majority.size()));
  AddShare(labels, share, "");
  if (const std::string memory = Mebibytes(gpu); !memory.empty()) Add(labels, "gpu.memory", memory);
  const auto capability = base::Split(gpu.architecture_version, '.');
  if (capability.size() != 2) return;
  Add(labels, "gpu.family", gpu.architecture.empty() ? "undefined" : gpu.architecture);
  Add(labels, "gpu.compute.major", capability[0]);
  Add(labels, "gpu.compute.minor", capability[1]);
}

/// Penstock's own labels: the model in the key, so that a nodeSelector can select it on a mixed
/// node.
void AddModels(Set& labels, const DeviceList& gpus, const Shares& shares) {
  std::map<std::string, DeviceList> models;
  for (const Facts* gpu : gpus)
    if (const std::string key = ModelKey(gpu->model); !key.empty()) models[key].push_back(gpu);
  for (const auto& [key, same] : models) {
    Add(labels, "gpu.present." + key, "true");
    Add(labels, "gpu.count." + key, std::to_string(same.size()));
    if (const std::string memory = Mebibytes(*same.front()); !memory.empty())
      Add(labels, "gpu.memory." + key, memory);
    AddShare(labels, ShareOf(same, shares), key);
  }
}

/// GPU instances without a compute instance that programs could use are not counted.
DeviceList MigDevices(const LabelFacts& facts) {
  DeviceList devices;
  for (const Facts* part : facts.parts)
    if (part->details.contains(kMigSlicesOfCompute)) devices.push_back(part);
  return devices;
}

/// The labels of MIG devices of one profile; `prefix`: "gpu", "mig-1g.5gb".
void AddMigDevices(Set& labels, const std::string& prefix, const DeviceList& same,
                   const Shares& shares) {
  const Facts& device = *same.front();
  std::string profile = device.profile;
  std::ranges::replace(profile, '+', '.');
  const ModelShare share = ShareOf(same, shares);
  const auto add = [&](const std::string& key, std::string value) {
    Add(labels, prefix + "." + key, std::move(value));
  };
  add("product", Sanitise(device.model) + "-MIG-" + profile +
                     (share.replicas > 1 && !share.renamed ? "-SHARED" : ""));
  add("count", std::to_string(same.size()));
  add("replicas", std::to_string(share.replicas));
  add("sharing-strategy", share.strategy);
  for (const auto& [key, detail] :
       {std::pair("memory", kMigMemory), std::pair("slices.gi", kMigSlicesOfGpu),
        std::pair("slices.ci", kMigSlicesOfCompute), std::pair("engines.copy", kMigCopyEngines),
        std::pair("engines.decoder", kMigDecoders), std::pair("engines.encoder", kMigEncoders),
        std::pair("engines.jpeg", kMigJpegs), std::pair("engines.ofa", kMigOfas)})
    add(key, Detail(device, detail));
  add("multiprocessors", std::to_string(device.compute_units));
}

void AddProfiles(Set& labels, const DeviceList& devices, const Shares& shares) {
  std::map<std::string, DeviceList> profiles;
  for (const Facts* device : devices) profiles[device->profile].push_back(device);
  for (auto& [profile, same] : profiles) {
    std::string name = profile;
    std::ranges::replace(name, '+', '.');
    AddMigDevices(labels, "mig-" + name, MajorityModel(same), shares);
  }
}

/// The labels of GPUs describe the MIG devices instead. GPU Feature Discovery calls a node invalid
/// that does not have MIG devices of one profile alone, on all of its GPUs.
void AddSingle(Set& labels, const DeviceList& gpus, const DeviceList& devices,
               const Shares& shares) {
  if (std::ranges::none_of(gpus, [](const Facts* gpu) { return MigEnabled(*gpu); })) return;
  std::set<std::string> profiles, divided;
  for (const Facts* device : devices) {
    profiles.insert(device->profile);
    divided.insert(device->pci ? ToString(*device->pci) : device->parent);
  }
  if (profiles.size() == 1 && divided.size() == gpus.size())
    return AddMigDevices(labels, "gpu", MajorityModel(devices), shares);
  const DeviceList majority = MajorityModel(gpus);
  Add(labels, "gpu.product", Sanitise(majority.front()->model) + "-MIG-INVALID");
  for (const char* key : {"gpu.count", "gpu.replicas", "gpu.memory"}) Add(labels, key, "0");
  Add(labels, "gpu.sharing-strategy", "");
}

std::string GpuMode(const DeviceList& gpus) {
  std::set<std::string> classes;
  for (const Facts* gpu : gpus) classes.insert(Detail(*gpu, kPciClass));
  if (classes.size() != 1) return "unknown";
  if (*classes.begin() == "0x030000") return "graphics";
  return *classes.begin() == "0x030200" ? "compute" : "unknown";
}

/// Only if all GPUs that are part of a fabric are part of the same one.
void AddClique(Set& labels, const DeviceList& gpus) {
  std::set<std::string> cliques;
  for (const Facts* gpu : gpus)
    if (const std::string cluster = Detail(*gpu, kFabricCluster); !cluster.empty())
      cliques.insert(cluster + "." + Detail(*gpu, kFabricClique));
  if (cliques.size() == 1) Add(labels, "gpu.clique", *cliques.begin());
}

/// From the capability that the hypervisor shows or, if that is not readable, from what the driver
/// reports. No label if neither is known.
void AddVgpu(Set& labels, const LabelFacts& facts) {
  bool vgpu = false, known = !facts.pci_configs.empty();
  for (const std::string_view config : facts.pci_configs) {
    const VgpuAnswer answer = FindVgpu(config);
    known = known && answer.known;
    if (!answer.vgpu) continue;
    vgpu = true;
    if (answer.vgpu->host_driver_version.empty()) continue;
    Add(labels, "vgpu.host-driver-version", answer.vgpu->host_driver_version);
    Add(labels, "vgpu.host-driver-branch", answer.vgpu->host_driver_branch);
  }
  const auto any = [&](auto question) { return std::ranges::all_of(facts.devices, question); };
  known = known || any([](const Facts* gpu) { return !Detail(*gpu, kVirtualization).empty(); });
  vgpu = vgpu || !any([](const Facts* gpu) { return Detail(*gpu, kVirtualization) != "vgpu"; });
  if (vgpu || known) Add(labels, "vgpu.present", vgpu ? "true" : "false");
}

DeviceList ByIndex(DeviceList gpus) {
  std::ranges::sort(gpus, [](const Facts* a, const Facts* b) {
    return std::tie(a->index, a->id) < std::tie(b->index, b->id);
  });
  return gpus;
}

Shares SharesOf(const LabelFacts& facts) {
  Shares shares;
  for (std::size_t i = 0; i < facts.parts.size() && i < facts.part_shares.size(); ++i)
    shares[facts.parts[i]] = facts.part_shares[i];
  for (std::size_t i = 0; i < facts.devices.size(); ++i) {
    static const device::LabelShare kWhole{.isolation =
                                               std::string(ToString(device::Isolation::kHardware))};
    shares[facts.devices[i]] = i < facts.shares.size() ? facts.shares[i] : kWhole;
  }
  return shares;
}

// Capabilities: PCI Local Bus Specification 3.0, 6.7 and appendix H.
constexpr std::size_t kStatus = 0x06, kFirstCapability = 0x34, kWholeConfig = 256;
constexpr unsigned kHasCapabilities = 0x10, kVendorCapability = 0x09;

unsigned Byte(std::string_view bytes, std::size_t at) {
  return at < bytes.size() ? static_cast<unsigned char>(bytes[at]) : 0u;
}

/// The first vendor-specific capability; empty if there is none or the chain is broken.
std::string_view VendorCapability(std::string_view config) {
  std::set<unsigned> seen;
  for (unsigned at = Byte(config, kFirstCapability); at != 0 && seen.insert(at).second;
       at = Byte(config, at + 1)) {
    if (Byte(config, at) == 0xff) return {};
    if (Byte(config, at) == kVendorCapability) return config.substr(at, Byte(config, at + 2));
  }
  return {};
}

std::string Text(std::string_view padded) {
  return std::string(padded.substr(0, padded.find('\0')));
}

/// Records of {id, length of the whole record, data} from byte 5 on; record 0 holds ten bytes each
/// of version and branch.
VgpuCapability HostDriver(std::string_view capability) {
  constexpr std::size_t kFirst = 5, kHead = 2, kField = 10;
  std::size_t at = kFirst;
  while (at + kHead <= capability.size() && Byte(capability, at) != 0) {
    const unsigned length = Byte(capability, at + 1);
    if (length < kHead) return {};
    at += length;
  }
  if (at + kHead + 2 * kField > capability.size()) return {};
  return {Text(capability.substr(at + kHead, kField)),
          Text(capability.substr(at + kHead + kField, kField))};
}

}  // namespace

std::string Sanitise(std::string_view name) {
  std::string text;
  bool blank = false;
  for (const char c : name) {
    if (std::isspace(static_cast<unsigned char>(c)) != 0) {
      // Blanks other than the space itself are dropped.
      blank = blank || (c == ' ' && !text.empty());
    } else if (IsAlphanumeric(c) || c == '-' || c == '_' || c == '.') {
      if (std::exchange(blank, false)) text += '-';
      text += c;
    }
  }
  return text;
}

std::string ModelKey(std::string_view model) {
  constexpr std::string_view kMaker = "NVIDIA-";
  std::string key = Sanitise(model);
  if (key.starts_with(kMaker)) key.erase(0, kMaker.size());
  key.resize(std::min(key.size(), kMaxModelKey));
  while (!key.empty() && !IsAlphanumeric(key.back())) key.pop_back();
  return key;
}

VgpuAnswer FindVgpu(std::string_view pci_config) {
  if (pci_config.size() < kFirstCapability) return {};
  if ((Byte(pci_config, kStatus) & kHasCapabilities) == 0) return {true, std::nullopt};
  if (pci_config.size() < kWholeConfig) return {};
  const std::string_view capability = VendorCapability(pci_config.substr(0, kWholeConfig));
  if (Byte(capability, 3) != 'V' || Byte(capability, 4) != 'F') return {true, std::nullopt};
  return {true, HostDriver(capability)};
}

std::map<std::string, std::string> NodeLabels(const LabelFacts& facts) {
  Set labels;
  if (facts.devices.empty() && facts.pci_configs.empty()) return labels;
  // The GPU Operator's label: there is a GPU, with or without a driver.
  Add(labels, "gpu.present", "true");
  if (facts.devices.empty() || facts.driver == nullptr) return labels;

  const DeviceList gpus = ByIndex(facts.devices);
  if (facts.timestamp) Add(labels, "gfd.timestamp", std::to_string(*facts.timestamp));
  const std::string machine = Sanitise(facts.machine);
  Add(labels, "gpu.machine", machine.empty() ? "unknown" : machine);
  AddDriver(labels, *facts.driver);
  AddRuntime(labels, *facts.driver);
  const Shares shares = SharesOf(facts);
  AddMajority(labels, MajorityModel(gpus), shares);
  AddModels(labels, gpus, shares);
  if (facts.part_names == device::PartNames::kOfProfiles)
    AddProfiles(labels, MigDevices(facts), shares);
  if (facts.part_names == device::PartNames::kOfDevices)
    AddSingle(labels, gpus, MigDevices(facts), shares);
  Add(labels, "gpu.mode", GpuMode(gpus));
  AddClique(labels, gpus);
  const bool mig =
      std::ranges::any_of(gpus, [](const Facts* gpu) { return MigMode(*gpu) != nullptr; });
  Add(labels, "mig.capable", mig ? "true" : "false");
  if (mig && facts.part_names != device::PartNames::kNone)
    Add(labels, "mig.strategy",
        facts.part_names == device::PartNames::kOfDevices ? "single" : "mixed");
  // GPU Feature Discovery means the configured sharing, not the hardware's ability.
  const auto mps = [](const auto& one) {
    return one.second.shape.sharing == device::Sharing::kServer;
  };
  Add(labels, "mps.capable", std::ranges::any_of(shares, mps) ? "true" : "false");
  AddVgpu(labels, facts);
  return labels;
}

}  // namespace penstock::backend::nvidia
