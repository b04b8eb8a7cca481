#include "backend/amd/machine.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <tuple>

#include "base/core/strings.h"
#include "os/folder_instance.h"

namespace penstock::backend::amd {
namespace {

using device::PciAddress;

constexpr std::size_t kMaxSysfsFile = 65536;
constexpr std::uint32_t kDrmMajor = 226;  // Documentation/admin-guide/devices.txt
constexpr const char* kDriverName = "amdgpu";
constexpr const char* kPciDevices = "/bus/pci/devices/";
constexpr const char* kPlatform = "/devices/platform";

/// Empty if it is no text: what a driver writes that is broken must not reach messages and labels.
std::string Trimmed(const base::Result<std::string>& text) {
  return text.ok() && base::IsUtf8(*text) ? std::string(base::Trim(*text)) : "";
}

/// "226:128".
std::optional<device::DeviceFile> Numbered(std::string path, const std::string& numbers) {
  const auto parts = base::Split(numbers, ':');
  if (parts.size() != 2) return std::nullopt;
  const auto major = base::ParseUint(parts[0]), minor = base::ParseUint(parts[1]);
  constexpr std::uint64_t kMaxMajor = 0xfff, kMaxMinor = 0xfffff;  // include/linux/kdev_t.h
  if (!major || !minor || *major > kMaxMajor || *minor > kMaxMinor) return std::nullopt;
  return device::DeviceFile{std::move(path), static_cast<std::uint32_t>(*major),
                            static_cast<std::uint32_t>(*minor)};
}

/// "amdgpu_xcp_3", of some kernels "amdgpu_xcp.3" (k8s-device-plugin #157).
bool IsPartitionDevice(std::string_view name) { return name.starts_with("amdgpu_xcp"); }

/// Where a link of sysfs leads to; empty if there is none.
std::string LinkedName(const os::Root& sysfs, const std::string& link) {
  const std::string target = sysfs.ReadLink(link).value_or("");
  return target.substr(target.rfind('/') + 1);
}

bool IsDrmName(const std::string& name) {
  for (const std::string_view kind : {"card", "renderD"})
    if (name.starts_with(kind) && base::ParseUint(std::string_view(name).substr(kind.size())))
      return true;
  return false;
}

struct Place {
  PciAddress pci;
  unsigned xcp = 0;
};

/// Linux' driver: the number of the partition in bits 28 to 31; AMD's packaged one: in the
/// function, which accelerators have one of.
Place PlaceOf(const KfdNode& node, const std::function<bool(const PciAddress&)>& exists) {
  constexpr std::uint32_t kByte = 0xff, kDevice = 0x1f, kFunction = 7;
  PciAddress pci{.domain = node.domain,
                 .bus = node.location >> 8 & kByte,
                 .device = node.location >> 3 & kDevice,
                 .function = node.location & kFunction};
  const unsigned high = node.location >> 28;
  if (pci.function == 0 || high != 0 || exists(pci)) return {pci, high};
  const unsigned xcp = pci.function;
  pci.function = 0;
  return {pci, xcp};
}

/// GPUs by their place get their ids.
void GiveIds(std::vector<AmdGpu>& gpus) {
  std::map<std::uint64_t, int> count;
  for (const AmdGpu& gpu : gpus) ++count[gpu.partitions.front().node.unique_id];
  for (AmdGpu& gpu : gpus) {
    const std::uint64_t unique = gpu.partitions.front().node.unique_id;
    if (unique == 0 || count[unique] > 1) {
      gpu.id = "GPU-" + ToString(gpu.pci);
      continue;
    }
    char text[17];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(unique));
    gpu.id = std::string("GPU-") + text;
  }
}

}  // namespace

std::vector<AmdGpu> GroupGpus(const std::vector<KfdNode>& nodes,
                              const std::function<bool(const PciAddress&)>& exists) {
  std::map<PciAddress, AmdGpu> by_place;
  for (const KfdNode& node : nodes) {
    const Place place = PlaceOf(node, exists);
    AmdGpu& gpu = by_place[place.pci];
    gpu.pci = place.pci;
    if (std::ranges::find(gpu.partitions, place.xcp, &Partition::xcp) == gpu.partitions.end())
      gpu.partitions.push_back({.xcp = place.xcp, .node = node});
  }
  std::vector<AmdGpu> gpus;
  for (auto& [place, gpu] : by_place) gpus.push_back(std::move(gpu));
  // In KFD's order, as programs count.
  std::ranges::sort(gpus, {}, [](const AmdGpu& gpu) { return gpu.partitions.front().node.number; });
  int number = 0;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    gpus[i].index = static_cast<int>(i);
    std::ranges::sort(gpus[i].partitions, {}, &Partition::xcp);
    for (Partition& partition : gpus[i].partitions) partition.number = number++;
  }
  GiveIds(gpus);
  return gpus;
}

void LinkGpus(std::vector<AmdGpu>& gpus,
              const std::function<std::vector<KfdLink>(unsigned node)>& links_of) {
  std::map<unsigned, std::size_t> gpu_of;  // by number of the node
  for (std::size_t i = 0; i < gpus.size(); ++i)
    for (const Partition& partition : gpus[i].partitions) gpu_of[partition.node.number] = i;
  for (AmdGpu& gpu : gpus) {
    gpu.links.clear();
    for (const Partition& partition : gpu.partitions) {
      for (const KfdLink& link : links_of(partition.node.number)) {
        const auto to = gpu_of.find(link.to);  // else a processor's node
        if (to != gpu_of.end() &&
            std::ranges::find(gpu.links, to->second, &GpuLink::to) == gpu.links.end())
          gpu.links.push_back({to->second, link.xgmi});
      }
      if (!gpu.links.empty()) break;
    }
  }
}

device::Evidence Standing(const AmdGpu& gpu, std::string_view kind, std::uint64_t code,
                          std::string text) {
  return {.source = device::EvidenceSource::kPoll,
          .device = gpu.id,
          .pci = gpu.pci,
          .kind = std::string(kind),
          .code = static_cast<std::int64_t>(code & INT64_MAX),
          .text = std::move(text),
          .standing = true};
}

std::string PartId(const AmdGpu& gpu, unsigned xcp) { return gpu.id + "-" + std::to_string(xcp); }

std::string PartAddress(const AmdGpu& gpu, unsigned xcp) {
  return ToString(gpu.pci) + "/" + std::to_string(xcp);
}

std::string Machine::File(const std::string& path) const {
  return Trimmed(sysfs_.Read(path, kMaxSysfsFile));
}

std::string Machine::PciFile(const PciAddress& pci, const std::string& name) const {
  return Trimmed(PciBytes(pci, name));
}

base::Result<std::string> Machine::PciBytes(const PciAddress& pci, const std::string& name) const {
  return sysfs_.Read(kPciDevices + ToString(pci) + "/" + name, kMaxSysfsFile);
}

std::vector<std::string> Machine::PciFolder(const PciAddress& pci, const std::string& name) const {
  return sysfs_.List(kPciDevices + ToString(pci) + "/" + name).value_or({});
}

bool Machine::Exists(const PciAddress& pci) const {
  return sysfs_.Exists(kPciDevices + ToString(pci));
}

std::string Machine::ModuleInstance() const { return os::FolderInstance(sysfs_.path() + kModule); }

std::string Machine::PciFolderInstance(const PciAddress& pci, const std::string& name) const {
  return os::FolderInstance(sysfs_.path() + kPciDevices + ToString(pci) + "/" + name);
}

std::optional<int> Machine::NumaNode(const PciAddress& pci) const {
  const auto node = base::ParseInt(PciFile(pci, "numa_node"));
  if (!node || *node < 0 || *node > 0xffff) return std::nullopt;
  return static_cast<int>(*node);
}

std::optional<device::DeviceFile> Machine::DrmFile(const std::string& folder,
                                                   const std::string& name) const {
  if (!IsDrmName(name)) return std::nullopt;
  return Numbered("/dev/dri/" + name, File(folder + "/" + name + "/dev"));
}

std::vector<device::DeviceFile> Machine::DrmFiles(unsigned render_minor) const {
  const std::string render = "renderD" + std::to_string(render_minor);
  const std::string folder = "/class/drm/" + render + "/device/drm";
  std::vector<device::DeviceFile> files;
  bool rendered = false;
  for (const std::string& name : sysfs_.List(folder).value_or({})) {
    auto file = DrmFile(folder, name);
    if (!file || (name.starts_with("render") && name != render)) continue;
    rendered = rendered || name == render;
    files.push_back(*std::move(file));
  }
  if (!rendered) return {{"/dev/dri/" + render, kDrmMajor, render_minor}};
  return files;
}

Machine::Cards Machine::DrmCards(const std::vector<AmdGpu>& gpus) const {
  const std::vector<device::DeviceNumbers> ours = Guarded(gpus);
  Cards cards;
  for (const std::string& name : sysfs_.List("/class/drm").value_or({})) {
    const auto file = name.starts_with("card") ? DrmFile("/class/drm", name) : std::nullopt;
    if (!file) continue;
    ++cards.all;
    if (std::ranges::none_of(ours, [&](const device::DeviceNumbers& one) {
          return one.major == file->major && one.first_minor <= file->minor &&
                 file->minor <= one.last_minor;
        }))
      cards.others.push_back(name);
  }
  return cards;
}

std::optional<device::DeviceFile> Machine::KfdFile() const {
  return Numbered("/dev/kfd", File("/class/kfd/kfd/dev"));
}

bool Machine::UsesDriver(std::uint32_t major, std::uint32_t minor) const {
  if (major != kDrmMajor) return true;
  const std::string file = "/dev/char/" + std::to_string(major) + ":" + std::to_string(minor);
  if (!sysfs_.Exists(file)) return true;
  // The devices of partitions have no driver (Linux, amdgpu_xcp_drv.c).
  return IsPartitionDevice(LinkedName(sysfs_, file + "/device")) ||
         LinkedName(sysfs_, file + "/device/driver") == kDriverName;
}

std::vector<device::DeviceNumbers> Machine::Guarded(const std::vector<AmdGpu>& gpus) const {
  std::vector<std::string> folders;
  for (const AmdGpu& gpu : gpus) folders.push_back(kPciDevices + ToString(gpu.pci) + "/drm");
  for (const std::string& name : sysfs_.List(kPlatform).value_or({}))
    if (IsPartitionDevice(name)) folders.push_back(std::string(kPlatform) + "/" + name + "/drm");
  std::set<std::pair<std::uint32_t, std::uint32_t>> numbers;
  for (const std::string& folder : folders)
    for (const std::string& name : sysfs_.List(folder).value_or({}))
      if (const auto file = DrmFile(folder, name)) numbers.emplace(file->major, file->minor);
  std::vector<device::DeviceNumbers> guarded;
  for (const auto& [major, minor] : numbers) {
    if (!guarded.empty() && guarded.back().major == major && guarded.back().last_minor + 1 == minor)
      guarded.back().last_minor = minor;
    else
      guarded.push_back({major, minor, minor});
  }
  return guarded;
}

}  // namespace penstock::backend::amd
