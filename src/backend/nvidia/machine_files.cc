#include "backend/nvidia/machine_files.h"

#include <array>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "backend/nvidia/dialect/capability_files.h"
#include "base/core/strings.h"
#include "base/log.h"
#include "os/core/file.h"
#include "os/core/root.h"
#include "os/device_file.h"

namespace penstock::backend::nvidia {
namespace {

using device::DeviceFile;

// Documentation/admin-guide/devices.txt: 195 is NVIDIA's; the numbers of the other modules are
// assigned when they are loaded.
constexpr std::uint32_t kUsualMajor = 195;
constexpr std::uint32_t kLastGpuMinor = 253;
constexpr std::uint32_t kControlMinor = 255, kModesetMinor = 254;
constexpr std::uint32_t kMaxMajor = 0xfff, kMaxMinor = 0xfffff;  // include/linux/kdev_t.h

constexpr std::size_t kMaxFileLength = 4096;  // a page, as a sysfs attribute
constexpr const char* kCapabilityMinors = "/driver/nvidia-caps/mig-minors";
constexpr std::size_t kMaxMinorsLength = 1u << 20;  // a driver for 32 GPUs has 100 KiB

/// A file below /dev. `dev_root` is the folder that contains dev/, or itself a /dev.
struct Node {
  bool exists = false;
  bool is_device = false;
  std::uint32_t major = 0, minor = 0;
};

Node FindNode(const std::string& dev_root, const std::string& name) {
  const auto root = os::Root::Open(dev_root);
  if (!root.ok()) return {};
  const std::string folder = root->Exists("/dev") ? "/dev/" : "/";
  const auto file = root->OpenFile(folder + name, O_PATH);
  struct stat about {};
  if (!file.ok() || ::fstat(file->get(), &about) != 0) return {};
  return {true, S_ISCHR(about.st_mode), major(about.st_rdev), minor(about.st_rdev)};
}

std::string ReadTrimmed(const std::string& path) {
  const auto text = os::ReadFile(path, kMaxFileLength);
  return text.ok() ? std::string(base::Trim(*text)) : "";
}

}  // namespace

DeviceFile MachineFiles::GpuFile(unsigned minor) const {
  const std::string name = "nvidia" + std::to_string(minor);
  const Node node = FindNode(paths_.dev_root, name);
  if (node.is_device) return {"/dev/" + name, node.major, node.minor};
  return {"/dev/" + name, GpuMajor(), minor};
}

std::vector<DeviceFile> MachineFiles::ControlFiles() const {
  const auto majors = Majors();
  const auto major_of = [&](const char* module, std::uint32_t otherwise) {
    const auto found = majors.find(module);
    return found != majors.end() ? found->second : otherwise;
  };
  const std::array usual{DeviceFile{"nvidiactl", GpuMajor(), kControlMinor},
                         DeviceFile{"nvidia-uvm", major_of("nvidia-uvm", 0), 0},
                         DeviceFile{"nvidia-uvm-tools", major_of("nvidia-uvm", 0), 1},
                         DeviceFile{"nvidia-modeset", GpuMajor(), kModesetMinor}};
  std::vector<DeviceFile> files;
  for (const DeviceFile& file : usual) {
    const Node node = FindNode(paths_.dev_root, file.path);
    if (!node.exists) continue;
    // Something else under that name (a plain file where device nodes cannot be created) still
    // counts; the numbers are then the usual ones.
    files.push_back(node.is_device ? DeviceFile{"/dev/" + file.path, node.major, node.minor}
                                   : DeviceFile{"/dev/" + file.path, file.major, file.minor});
  }
  return files;
}

std::vector<DeviceFile> MachineFiles::GraphicsFiles(const device::PciAddress& pci) const {
  const std::string folder = paths_.sysfs_root + "/bus/pci/devices/" + ToString(pci) + "/drm";
  const auto names = os::ListDirectory(folder);
  std::vector<DeviceFile> files;
  for (const std::string& name : names.value_or({})) {
    const std::vector<std::string> numbers =
        base::Split(ReadTrimmed(folder + "/" + name + "/dev"), ':');
    if (numbers.size() != 2) continue;
    const auto major = base::ParseUint(numbers[0]), minor = base::ParseUint(numbers[1]);
    if (!major || !minor || *major > kMaxMajor || *minor > kMaxMinor) continue;
    files.push_back({"/dev/dri/" + name, static_cast<std::uint32_t>(*major),
                     static_cast<std::uint32_t>(*minor)});
  }
  return files;
}

namespace {

/// Also in place of one from before the driver was loaded again with another number. Fails without
/// effect where this process may not. The mode is that of nvidia-modprobe.
void CreateCapabilityFile(const std::string& dev_root, const std::string& path, std::uint32_t major,
                          std::uint32_t minor) {
  const std::string folder = base::FolderOf(dev_root + path);
  (void)::mkdir(folder.c_str(), 0755);
  const Status put = os::PutDeviceFile(folder, base::LeafOf(path), major, minor, 0444);
  if (put.ok()) base::Log(base::kInfo, "capability file created", {{"file", path}});
}

}  // namespace

std::vector<DeviceFile> MachineFiles::CapabilityFiles(unsigned gpu_minor, unsigned gpu_instance,
                                                      unsigned compute_instance) const {
  // A driver root of its own, as driver containers have, has a /proc of its own.
  std::string list = paths_.proc_root + kCapabilityMinors;
  auto text = os::ReadFile(list, kMaxMinorsLength);
  if (!text.ok()) {
    list = paths_.driver_root + "/proc" + kCapabilityMinors;
    text = os::ReadFile(list, kMaxMinorsLength);
  }
  if (!text.ok()) return {};
  const auto minors = ParseCapabilityMinors(*text, list);
  if (!minors.ok()) return {};
  const auto majors = Majors();
  const auto major = majors.find("nvidia-caps");
  const std::string of_gpu =
      "gpu" + std::to_string(gpu_minor) + "/gi" + std::to_string(gpu_instance);
  std::vector<DeviceFile> files;
  for (const std::string& capability :
       {of_gpu + "/access", of_gpu + "/ci" + std::to_string(compute_instance) + "/access"}) {
    const auto minor = minors->find(capability);
    if (minor == minors->end()) return {};
    const std::string path = CapabilityFile(minor->second);
    const Node node = FindNode(paths_.dev_root, path.substr(std::string_view("/dev/").size()));
    const std::uint32_t reported = major == majors.end() ? 0 : major->second;
    const bool current = node.is_device && node.major == reported && node.minor == minor->second;
    if (reported != 0 && !current)
      CreateCapabilityFile(paths_.dev_root, path, reported, minor->second);
    files.push_back({path, reported != 0 ? reported : node.major, minor->second});
  }
  return files;
}

std::vector<device::DeviceNumbers> MachineFiles::GuardedNumbers() const {
  std::vector<device::DeviceNumbers> guarded = {{GpuMajor(), 0, kLastGpuMinor}};
  const auto majors = Majors();
  const auto reported = majors.find("nvidia-caps");
  const Node config = FindNode(paths_.dev_root, "nvidia-caps/nvidia-cap1");  // exists if any
                                                                             // capability file does
  if (reported != majors.end() || config.is_device)
    guarded.push_back({reported != majors.end() ? reported->second : config.major, 0, kMaxMinor});
  return guarded;
}

std::map<std::string, std::uint32_t> MachineFiles::Majors() const {
  std::map<std::string, std::uint32_t> majors;
  const auto text = os::ReadFile(paths_.proc_root + "/devices", 65536);
  if (!text.ok()) return majors;
  for (const std::string& line : base::Split(*text, '\n')) {
    if (line == "Block devices:") break;
    const std::string_view entry = base::Trim(line);
    const auto blank = entry.find(' ');
    if (blank == std::string_view::npos) continue;
    const auto number = base::ParseUint(entry.substr(0, blank));
    if (number && *number <= kMaxMajor)
      majors.emplace(base::Trim(entry.substr(blank)), static_cast<std::uint32_t>(*number));
  }
  return majors;
}

std::uint32_t MachineFiles::GpuMajor() const {
  const auto majors = Majors();
  for (const char* name : {"nvidia-frontend", "nvidia"})
    if (const auto found = majors.find(name); found != majors.end()) return found->second;
  return kUsualMajor;
}

std::string MachineFiles::PciFile(const device::PciAddress& pci, const char* name) const {
  return ReadTrimmed(paths_.sysfs_root + "/bus/pci/devices/" + ToString(pci) + "/" + name);
}

std::optional<int> MachineFiles::NumaNode(const device::PciAddress& pci) const {
  const auto node = base::ParseInt(PciFile(pci, "numa_node"));
  if (!node || *node < 0 || *node > 0xffff) return std::nullopt;
  return static_cast<int>(*node);
}

std::string MachineFiles::NearCpus(const device::PciAddress& pci) const {
  std::string list = PciFile(pci, "local_cpulist");
  return list.find_first_not_of("0123456789,-") == std::string::npos ? list : "";
}

std::string MachineFiles::PciClass(const device::PciAddress& pci) const {
  return PciFile(pci, "class");
}

bool MachineFiles::IsSwitch(const device::PciAddress& pci) const {
  return PciClass(pci).starts_with("0x0680");
}

base::Result<std::string> MachineFiles::ModuleVersion() const {
  ASSIGN(const std::string text,
         os::ReadFile(paths_.sysfs_root + "/module/nvidia/version", kMaxFileLength));
  return std::string(base::Trim(text));
}

}  // namespace penstock::backend::nvidia
