#include "backend/nvidia/mig.h"

#include <algorithm>
#include <array>
#include <map>

#include "backend/nvidia/dialect/kinds.h"
#include "backend/nvidia/dialect/mig_profile.h"
#include "backend/nvidia/mig_compute.h"
#include "backend/nvidia/nvml_device.h"
#include "base/core/strings.h"

namespace penstock::backend::nvidia {
namespace {

using device::Facts;
using device::PartProfile;

constexpr unsigned kMaxKinds = 32;          // of profiles; nvml.h 13 has 18
constexpr unsigned kMaxInstances = 64;      // of one profile
constexpr unsigned kMaxMigDevices = 64;     // of one GPU
constexpr std::string_view kName = "MIG ";  // precedes the name of a profile
constexpr std::string_view kUuid = "MIG-";

struct Profile {
  abi::GpuInstanceProfile info{};
  std::string name;
};

/// Nothing where this GPU has no such profile. `last`: there are no further kinds.
std::optional<Profile> ReadProfile(const Nvml& nvml, abi::Device gpu, unsigned kind,
                                   base::Bytes memory, bool& last) {
  Profile profile;
  abi::GpuInstanceProfileV2 named{};
  named.version = abi::kGpuInstanceProfileV2;
  abi::Return answer = nvml->gpu_instance_profile_v2(gpu, kind, &named);
  if (answer == abi::kSuccess) {
    profile.info = {named.id,       named.peer_to_peer,    named.slices,
                    named.most,     named.multiprocessors, named.copy,
                    named.decoders, named.encoders,        named.jpegs,
                    named.ofas,     named.memory_mib};
    named.name[sizeof named.name - 1] = 0;
    profile.name = named.name;
    if (profile.name.starts_with(kName)) profile.name.erase(0, kName.size());
  } else if (answer == abi::kFunctionNotFound || answer == abi::kArgumentVersionMismatch) {
    answer = nvml->gpu_instance_profile(gpu, kind, &profile.info);
  }
  last = answer == abi::kInvalidArgument || answer == abi::kFunctionNotFound;
  if (answer != abi::kSuccess || profile.info.slices == 0) return std::nullopt;
  if (profile.name.empty())
    profile.name = MigProfileName(kind, profile.info.slices, profile.info.memory_mib, memory);
  return profile;
}

/// The engines of which each instance has some to itself. Copy engines are not among them: without
/// one of its own, an instance uses another's.
std::map<std::string, int> EnginesOf(const abi::GpuInstanceProfile& info) {
  std::map<std::string, int> engines;
  for (const auto& [name, count] :
       {std::pair("decoder", info.decoders), std::pair("encoder", info.encoders),
        std::pair("jpeg", info.jpegs), std::pair("ofa", info.ofas)})
    if (count != 0) engines[name] = static_cast<int>(count);
  return engines;
}

/// Whether the answer of a call about instances says that there is none, or that this driver does
/// not show them.
bool SaysNone(abi::Return answer) { return answer == abi::kNotFound || IsPermanent(answer); }

base::Result<std::vector<abi::GpuInstance>> HandlesOf(const Nvml& nvml, abi::Device gpu,
                                                      unsigned profile, bool& permitted) {
  std::array<abi::GpuInstance, kMaxInstances> handles{};
  unsigned count = handles.size();
  const abi::Return answer = nvml->gpu_instances(gpu, profile, handles.data(), &count);
  permitted = permitted && answer != abi::kNoPermission;
  if (SaysNone(answer)) return std::vector<abi::GpuInstance>{};
  if (answer != abi::kSuccess) return ToError(answer, nvml->gpu_instances.name);
  return std::vector(handles.begin(), handles.begin() + std::min<unsigned>(count, handles.size()));
}

base::Result<MigDevice> ReadMigDevice(const Nvml& nvml, abi::Device handle, int index) {
  MigDevice device{.index = index};
  std::array<char, abi::kUuidLength + 1> uuid{};
  for (const auto& [answer, function] :
       {std::pair(nvml->uuid(handle, uuid.data(), abi::kUuidLength), nvml->uuid.name),
        std::pair(nvml->gpu_instance_id(handle, &device.gpu_instance), nvml->gpu_instance_id.name),
        std::pair(nvml->compute_instance_id(handle, &device.compute_instance),
                  nvml->compute_instance_id.name),
        std::pair(nvml->attributes(handle, &device.attributes), nvml->attributes.name)})
    if (answer != abi::kSuccess) return ToError(answer, function);
  device.uuid = uuid.data();
  return device;
}

/// The facts that a part has from its GPU.
Facts PartOf(const Facts& gpu) {
  Facts part;
  part.vendor = gpu.vendor;
  part.kind = gpu.kind;
  part.model = gpu.model;
  part.pci = gpu.pci;
  part.numa_node = gpu.numa_node;
  part.cpu_affinity = gpu.cpu_affinity;
  part.architecture = gpu.architecture;
  part.architecture_version = gpu.architecture_version;
  part.serial = gpu.serial;
  part.parent = gpu.id;
  return part;
}

/// "MIG-GPU-5a…/3", as drivers before 470 named compute instances, without the last number.
std::string GpuInstanceId(const Facts& gpu, unsigned instance) {
  return std::string(kUuid) + gpu.id + "/" + std::to_string(instance);
}

void AddEngines(const abi::Attributes& attributes, Facts& facts) {
  for (const auto& [name, count] :
       {std::pair(kMigSlicesOfGpu, attributes.gpu_slices),
        std::pair(kMigSlicesOfCompute, attributes.compute_slices),
        std::pair(kMigCopyEngines, attributes.copy), std::pair(kMigDecoders, attributes.decoders),
        std::pair(kMigEncoders, attributes.encoders), std::pair(kMigJpegs, attributes.jpegs),
        std::pair(kMigOfas, attributes.ofas)})
    facts.details[name] = std::to_string(count);
  facts.details[kMigMemory] = std::to_string(attributes.memory_mib);
}

/// Those of the largest instance.
int SlicesOfAll(const Facts& gpu) {
  int slices = 0;
  for (const PartProfile& profile : gpu.profiles) slices = std::max(slices, profile.slices);
  return slices;
}

}  // namespace

std::string MigProfileName(unsigned kind, unsigned slices, unsigned long long memory_mib,
                           base::Bytes gpu_memory) {
  constexpr std::array<std::string_view, 18> kAttributes{
      "", "",     "",     "",     "",    "",    "",        "+me",     "+me",
      "", "+gfx", "+gfx", "+gfx", "-me", "-me", "+me.all", "+me.all", "+gfx"};
  // go-nvlib, getMigMemorySizeGB: eighths of the whole memory, rounded up.
  const unsigned long long total_mib = gpu_memory.mebibytes();
  const unsigned long long total_gib = (total_mib + 1023) / 1024;
  const unsigned long long eighths =
      total_mib == 0 ? 0 : (8 * memory_mib + total_mib - 1) / total_mib;
  const unsigned long long gigabytes = (eighths * total_gib + 4) / 8;
  return std::to_string(slices) + "g." + std::to_string(gigabytes) + "gb" +
         std::string(kind < kAttributes.size() ? kAttributes[kind] : "");
}

Mig ReadMigProfiles(const Nvml& nvml, abi::Device gpu, base::Bytes memory) {
  Mig mig;
  bool last = false;
  for (unsigned kind = 0; kind < kMaxKinds && !last; ++kind) {
    const auto profile = ReadProfile(nvml, gpu, kind, memory, last);
    if (!profile) continue;
    const abi::GpuInstanceProfile& info = profile->info;
    mig.names[info.id] = profile->name;
    mig.profiles.push_back(
        {.name = profile->name,
         .slices = static_cast<int>(info.slices),
         .most = static_cast<int>(info.most),
         .placements = ListPlacements(nvml->gpu_instance_placements, gpu, info.id),
         .capacity = {.memory = base::Mebibytes(info.memory_mib),
                      .compute_units = static_cast<int>(info.multiprocessors)},
         .engines = EnginesOf(info),
         .kind = static_cast<int>(kind)});
    for (PartProfile& within : ComputeProfilesWithin(PartProfile(mig.profiles.back())))
      mig.profiles.push_back(std::move(within));
  }
  if (nvml->create_compute_instance_at) PlaceComputeProfiles(mig.profiles);
  return mig;
}

base::Status ReadMigParts(const Nvml& nvml, abi::Device gpu, Mig& mig) {
  mig.instances.clear();
  mig.devices.clear();
  std::map<unsigned, abi::GpuInstance> found;  // by id
  for (const auto& [profile, name] : mig.names) {
    ASSIGN(const auto handles, HandlesOf(nvml, gpu, profile, mig.permitted));
    for (const abi::GpuInstance handle : handles) {
      abi::GpuInstanceInfo info{};
      const abi::Return answer = nvml->gpu_instance_info(handle, &info);
      if (answer != abi::kSuccess) return ToError(answer, nvml->gpu_instance_info.name);
      found[info.id] = handle;
      mig.instances.push_back(
          {info.id,
           name,
           {static_cast<int>(info.placement.start), static_cast<int>(info.placement.size)}});
    }
  }
  std::ranges::sort(mig.instances, {}, &GpuInstance::id);

  unsigned most = 0;
  if (const abi::Return answer = nvml->mig_devices_most(gpu, &most); answer != abi::kSuccess)
    return SaysNone(answer) ? base::Status() : ToError(answer, nvml->mig_devices_most.name);
  for (unsigned index = 0; index < std::min(most, kMaxMigDevices); ++index) {
    abi::Device handle = nullptr;  // indices may have gaps
    const abi::Return answer = nvml->mig_device_by_index(gpu, index, &handle);
    if (SaysNone(answer)) continue;
    if (answer != abi::kSuccess) return ToError(answer, nvml->mig_device_by_index.name);
    ASSIGN(MigDevice device, ReadMigDevice(nvml, handle, static_cast<int>(index)));
    const auto in = found.find(device.gpu_instance);
    if (!device.fills_its_gpu_instance() && in != found.end()) {
      ASSIGN(device.placement, ComputePlacement(nvml, in->second, device.compute_instance));
    }
    mig.devices.push_back(std::move(device));
  }
  return {};
}

void ReadComputePlacements(const Nvml& nvml, abi::Device gpu, Mig& mig) {
  std::map<std::string_view, unsigned> instances;  // one of each profile
  for (const GpuInstance& one : mig.instances)
    if (!mig.IsFilled(one)) instances.emplace(one.profile, one.id);
  for (PartProfile& profile : mig.profiles) {
    const auto outer = instances.find(profile.within);
    if (outer == instances.end()) continue;
    abi::GpuInstance instance = nullptr;
    if (nvml->gpu_instance_by_id(gpu, outer->second, &instance) != abi::kSuccess) continue;
    const auto id = ComputeProfile(nvml, instance, profile.slices);
    if (!id.ok()) continue;
    auto placements = ListPlacements(nvml->compute_instance_placements, instance, *id);
    if (!placements.empty()) profile.placements = std::move(placements);
  }
}

bool Mig::IsFilled(const GpuInstance& instance) const {
  return std::ranges::any_of(devices, [&](const MigDevice& device) {
    return device.gpu_instance == instance.id && device.fills_its_gpu_instance();
  });
}

std::vector<std::string> Mig::Addresses(const std::string& gpu) const {
  std::vector<std::string> addresses;
  for (const GpuInstance& instance : instances)
    if (!IsFilled(instance)) addresses.push_back(gpu + "/" + std::to_string(instance.id));
  for (const MigDevice& device : devices) addresses.push_back(device.uuid);
  return addresses;
}

std::optional<GpuInstanceAddress> ParseGpuInstance(std::string_view address) {
  const auto slash = address.find('/');
  if (slash == std::string_view::npos || IsMigDevice(address)) return std::nullopt;
  const auto instance = base::ParseUint(address.substr(slash + 1));
  if (!base::ParseUint(address.substr(0, slash)) || !instance || *instance > 0xffff)
    return std::nullopt;
  return GpuInstanceAddress{std::string(address.substr(0, slash)),
                            static_cast<unsigned>(*instance)};
}

bool IsMigDevice(std::string_view address) { return address.starts_with(kUuid); }

base::Result<Facts> MigDeviceFacts(const Mig& mig, const MachineFiles& files, const Facts& of_gpu,
                                   const std::string& uuid) {
  const auto device = std::ranges::find(mig.devices, uuid, &MigDevice::uuid);
  if (device == mig.devices.end())
    return Error(Code::kNotFound, "there is no MIG device " + uuid + " on " + of_gpu.id);
  const abi::Attributes& attributes = device->attributes;
  Facts facts = PartOf(of_gpu);
  facts.id = facts.address = uuid;
  facts.number = std::to_string(of_gpu.index) + ":" + std::to_string(device->index);
  facts.compute_units = static_cast<int>(attributes.multiprocessors);
  const auto instance = std::ranges::find(mig.instances, device->gpu_instance, &GpuInstance::id);
  if (instance != mig.instances.end()) {
    facts.profile = instance->profile;
    facts.placement = instance->placement;
  }
  if (facts.profile.empty())
    facts.profile = MigProfileName(0, attributes.gpu_slices, attributes.memory_mib, of_gpu.memory);
  if (device->fills_its_gpu_instance()) {
    facts.memory = base::Mebibytes(attributes.memory_mib);
  } else {
    facts.profile = std::to_string(attributes.compute_slices) + "c." + facts.profile;
    facts.placement = device->placement;
    facts.parent = GpuInstanceId(of_gpu, device->gpu_instance);
  }
  facts.part = PartName(device->gpu_instance, device->compute_instance);
  facts.details[kMigProfile] = facts.profile;
  facts.details[kGpuInstance] = std::to_string(device->gpu_instance);
  AddEngines(attributes, facts);
  if (const int slices = SlicesOfAll(of_gpu); slices > 0)
    facts.details[kMigSlicesOfAll] = std::to_string(slices);
  if (of_gpu.files.empty()) return facts;
  facts.files.push_back(of_gpu.files.front());
  std::vector<device::DeviceFile> capabilities = files.CapabilityFiles(
      of_gpu.files.front().minor, device->gpu_instance, device->compute_instance);
  if (capabilities.empty())
    facts.withheld = "the driver does not say which files in /dev/nvidia-caps permit its use";
  for (device::DeviceFile& file : capabilities) facts.files.push_back(std::move(file));
  return facts;
}

base::Result<Facts> GpuInstanceFacts(const Mig& mig, const Facts& of_gpu,
                                     const GpuInstanceAddress& address) {
  const auto instance = std::ranges::find(mig.instances, address.instance, &GpuInstance::id);
  if (instance == mig.instances.end())
    return Error(Code::kNotFound,
                 "GPU " + address.gpu + " has no GPU instance " + std::to_string(address.instance));
  Facts facts = PartOf(of_gpu);
  facts.id = GpuInstanceId(of_gpu, instance->id);
  facts.address = address.gpu + "/" + std::to_string(instance->id);
  facts.part = PartName(instance->id, {});
  facts.profile = instance->profile;
  facts.placement = instance->placement;
  const auto profile = std::ranges::find(of_gpu.profiles, instance->profile, &PartProfile::name);
  if (profile != of_gpu.profiles.end()) {
    facts.memory = profile->capacity.memory;
    facts.compute_units = profile->capacity.compute_units;
  }
  facts.details[kMigProfile] = facts.profile;
  facts.details[kGpuInstance] = std::to_string(instance->id);
  facts.withheld = "it has no compute instance that fills it";
  return facts;
}

}  // namespace penstock::backend::nvidia
