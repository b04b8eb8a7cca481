#include "sim/tree.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "sim/compile.h"
#include "sim/machine.h"
#include "sim/symbols.h"

namespace penstock::sim {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kNvidiaMajor = 195;
constexpr const char* kPrograms[] = {"nvidia-smi", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server", "mps-client"};

// Gathers the first failure, so that building reads as a list of what there is.
class Builder {
 public:
  explicit Builder(std::string root) : root_(std::move(root)) {}

  std::string Path(const std::string& path) const { return root_ + "/" + path; }

  // A line of text.
  void File(const std::string& path, std::string_view content, unsigned mode = 0444) {
    Bytes(path, std::string(content) + (content.empty() || content.back() == '\n' ? "" : "\n"), mode);
  }

  void Bytes(const std::string& path, const std::string& content, unsigned mode) {
    Folder(fs::path(path).parent_path());
    const std::string full = Path(path);
    unlink(full.c_str());
    const int fd = open(full.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) return Fail(errno, "create " + full);
    if (write(fd, content.data(), content.size()) != static_cast<ssize_t>(content.size())) Fail(errno, "write " + full);
    fchmod(fd, mode);
    close(fd);
  }

  void Folder(const std::string& path) {
    std::error_code error;
    fs::create_directories(Path(path), error);
    if (error) Fail(error.value(), "create " + Path(path));
  }

  void Link(const std::string& path, const std::string& target) {
    Folder(fs::path(path).parent_path());
    unlink(Path(path).c_str());
    if (symlink(target.c_str(), Path(path).c_str()) != 0) Fail(errno, "link " + Path(path));
  }

  // `edit` changes the copy before it gets its name.
  void Copy(
      const std::string& from, const std::string& path,
      const std::function<base::Status(const std::string&)>& edit = [](const std::string&) { return base::Status(); }) {
    Folder(fs::path(path).parent_path());
    std::error_code error;
    // A new file beside, then renamed: a process that has the old one mapped keeps it whole.
    const std::string temporary = Path(path) + ".new";
    fs::copy_file(from, temporary, fs::copy_options::overwrite_existing, error);
    if (!error)
      if (const auto edited = edit(temporary); !edited.ok() && error_.empty()) error_ = edited.error().message();
    if (!error) fs::rename(temporary, Path(path), error);
    if (error) Fail(error.value(), "copy " + from + " to " + Path(path));
  }

  // A device node; where the kernel refuses to make one, an empty file of the same name.
  void Device(const std::string& path, unsigned major_number, unsigned minor_number, unsigned mode = 0666) {
    Folder(fs::path(path).parent_path());
    const std::string full = Path(path);
    struct stat info {};
    if (lstat(full.c_str(), &info) == 0) {
      if (S_ISCHR(info.st_mode) && info.st_rdev == makedev(major_number, minor_number)) return;
      if (S_ISREG(info.st_mode) && !can_make_devices_) return;
      unlink(full.c_str());
    }
    if (can_make_devices_ && mknod(full.c_str(), S_IFCHR | mode, makedev(major_number, minor_number)) == 0) {
      chmod(full.c_str(), mode);
      return;
    }
    if (can_make_devices_ && errno != EPERM && errno != EACCES) return Fail(errno, "make device " + full);
    can_make_devices_ = false;
    File(path, "", mode);
  }

  void Remove(const std::string& path) {
    std::error_code error;
    fs::remove_all(Path(path), error);
    if (error) Fail(error.value(), "remove " + Path(path));
  }

  bool can_make_devices() const { return can_make_devices_; }
  base::Status status() const { return error_.empty() ? base::Status() : base::Status(base::Error(base::Code::kUnavailable, error_)); }

 private:
  void Fail(int error, const std::string& doing) {
    if (error_.empty()) error_ = base::ErrnoError(error, doing).message();
  }
  std::string root_, error_;
  bool can_make_devices_ = true;
};

std::string Hex(std::uint32_t value, int digits) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%0*x", digits, value);
  return text;
}

std::string Address(const SimGpu& gpu) { return ToString({gpu.domain, gpu.bus, gpu.device}); }

const char* LinkSpeed(std::uint32_t generation) {
  constexpr const char* kSpeeds[] = {"Unknown",        "2.5 GT/s PCIe",  "5.0 GT/s PCIe", "8.0 GT/s PCIe",
                                     "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe"};
  return kSpeeds[generation <= 6 ? generation : 0];
}

// Where a device lies below sys/devices: its root complex (named after the bus, as firmware would number it), a port, itself.
std::string DevicePath(const std::string& address) {
  const std::string domain_bus = address.substr(0, 7);
  if (domain_bus.ends_with(":00")) return "sys/devices/pci" + domain_bus + "/" + address;
  std::string root = domain_bus;
  root.back() = '0';  // 07 hangs below 00, 4e below 40
  return "sys/devices/pci" + root + "/" + root + ":01.1/" + address;
}

// Up from a device folder to sys/.
std::string UpToSys(const std::string& device_path) {
  std::string up;
  for (std::size_t depth = base::Split(device_path, '/').size(); depth > 1; depth--) up += "../";
  return up;
}

struct PciDevice {
  std::string address;
  std::uint32_t id, subsystem, pci_class;  // device << 16 | vendor
  int numa_node;
  std::string cpu_list;
  std::uint32_t generation, max_generation, width;
  const char* driver;
  std::uint64_t window = 0;                        // to the device's memory
  std::string vgpu_host_driver, vgpu_host_branch;  // ten characters at most
};

void PutWord(std::string& bytes, std::size_t at, std::uint32_t value, int length) {
  for (int i = 0; i < length; i++) bytes[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * i));
}

// The first 256 bytes: the header and NVIDIA's usual chain of capabilities. The last one is the vendor's own; in a guest a vGPU's says "VF"
// and which driver the host has.
std::string ConfigSpace(const PciDevice& device) {
  constexpr std::size_t kVendorCapability = 0xb4;
  std::string bytes(256, '\0');
  PutWord(bytes, 0x00, device.id & 0xffff, 2);
  PutWord(bytes, 0x02, device.id >> 16, 2);
  PutWord(bytes, 0x04, 0x0406, 2);
  PutWord(bytes, 0x06, 0x0010, 2);  // has capabilities
  PutWord(bytes, 0x08, 0xa1, 1);
  PutWord(bytes, 0x09, device.pci_class, 3);
  PutWord(bytes, 0x2c, device.subsystem & 0xffff, 2);
  PutWord(bytes, 0x2e, device.subsystem >> 16, 2);
  PutWord(bytes, 0x34, 0x60, 1);
  PutWord(bytes, 0x60, 0x6801, 2);  // power management, MSI, PCI Express
  PutWord(bytes, 0x68, 0x7805, 2);
  PutWord(bytes, 0x78, kVendorCapability << 8 | 0x10, 2);
  PutWord(bytes, kVendorCapability, 0x140009, 3);
  if (device.vgpu_host_driver.empty()) return bytes;
  PutWord(bytes, kVendorCapability + 2, 0x1b, 1);
  bytes.replace(kVendorCapability + 3, 2, "VF");
  PutWord(bytes, kVendorCapability + 5, 0x1600, 2);  // record 0, 22 bytes
  bytes.replace(kVendorCapability + 7, device.vgpu_host_driver.size(), device.vgpu_host_driver);
  bytes.replace(kVendorCapability + 17, device.vgpu_host_branch.size(), device.vgpu_host_branch);
  return bytes;
}

// The regions as sysfs lists them, start, end and flags: registers, the window to the memory, and a third one. Where they lie is made up.
std::string Regions(const PciDevice& device) {
  constexpr std::uint64_t kMemory = 0x40200, kWide = 0x14220c;
  const std::uint64_t bus = base::ParseUint(device.address.substr(5, 2), 16).value_or(0);
  const std::uint64_t high = (0x20ull << 40) + (bus << 40);
  std::string text;
  for (int region = 0; region < 13; region++) {
    std::uint64_t start = 0, size = 0, flags = kWide;
    if (region == 0) start = 0x80000000ull + (bus % 64 << 24), size = 16ull << 20, flags = kMemory;
    if (region == 1 && device.window != 0) start = high, size = device.window;
    if (region == 3 && device.window != 0) start = high + (1ull << 39), size = 32ull << 20;
    char line[64];
    std::snprintf(line, sizeof line, "0x%016llx 0x%016llx 0x%016llx\n", static_cast<unsigned long long>(start),
                  static_cast<unsigned long long>(size ? start + size - 1 : 0), static_cast<unsigned long long>(size ? flags : 0));
    text += line;
  }
  return text;
}

void AddPciDevice(Builder& tree, const PciDevice& device, bool loaded) {
  const std::string folder = DevicePath(device.address);
  tree.File(folder + "/vendor", Hex(device.id & 0xffff, 4));
  tree.File(folder + "/device", Hex(device.id >> 16, 4));
  tree.File(folder + "/subsystem_vendor", Hex(device.subsystem & 0xffff, 4));
  tree.File(folder + "/subsystem_device", Hex(device.subsystem >> 16, 4));
  tree.File(folder + "/class", Hex(device.pci_class, 6));
  tree.File(folder + "/revision", "0xa1");
  tree.File(folder + "/numa_node", std::to_string(device.numa_node));
  tree.File(folder + "/local_cpulist", device.cpu_list);
  tree.File(folder + "/current_link_speed", LinkSpeed(device.generation));
  tree.File(folder + "/current_link_width", std::to_string(device.width));
  tree.File(folder + "/max_link_speed", LinkSpeed(device.max_generation));
  tree.File(folder + "/max_link_width", std::to_string(device.width));
  tree.File(folder + "/enable", "1", 0644);
  tree.Bytes(folder + "/config", ConfigSpace(device), 0644);
  tree.File(folder + "/resource", Regions(device));
  tree.Link(folder + "/subsystem", UpToSys(folder) + "bus/pci");
  tree.Link("sys/bus/pci/devices/" + device.address, "../../../" + folder.substr(4));
  char text[256];
  std::snprintf(text, sizeof text, "%sPCI_CLASS=%X\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:%04X\nPCI_SLOT_NAME=%s\n",
                loaded ? "DRIVER=nvidia\n" : "", device.pci_class, device.id & 0xffff, device.id >> 16, device.subsystem & 0xffff,
                device.subsystem >> 16, device.address.c_str());
  tree.File(folder + "/uevent", text, 0644);
  const std::string driver = std::string("sys/bus/pci/drivers/") + device.driver;
  if (loaded) {
    tree.Link(folder + "/driver", UpToSys(folder) + "bus/pci/drivers/" + device.driver);
    tree.Link(driver + "/" + device.address, "../../../../" + folder.substr(4));
  } else {
    tree.Remove(folder + "/driver");
    tree.Remove(driver + "/" + device.address);
  }
}

void RemovePciDevice(Builder& tree, const std::string& address) {
  tree.Remove("sys/bus/pci/devices/" + address);
  tree.Remove("sys/bus/pci/drivers/nvidia/" + address);
  tree.Remove(DevicePath(address));
}

// GeForce boards carry an audio function too.
std::string AudioAddress(const SimGpu& gpu) {
  std::string address = Address(gpu);
  address.back() = '1';
  return address;
}

void SyncGpuInSys(Builder& tree, const SimGpu& gpu, bool loaded) {
  const bool has_audio = gpu.pci_class == 0x030000;
  if (gpu.removed) {
    RemovePciDevice(tree, Address(gpu));
    if (has_audio) RemovePciDevice(tree, AudioAddress(gpu));
    return;
  }
  AddPciDevice(tree,
               {Address(gpu), gpu.pci_id, gpu.subsystem_id, gpu.pci_class, gpu.numa_node, gpu.cpu_list, gpu.pcie_gen_current,
                gpu.pcie_gen_max, gpu.pcie_width, "nvidia", gpu.bar1_total, gpu.vgpu_host_driver, gpu.vgpu_host_branch},
               loaded);
  if (has_audio)
    AddPciDevice(tree,
                 {AudioAddress(gpu), 0x1aef10de, gpu.subsystem_id, 0x040300, gpu.numa_node, gpu.cpu_list, gpu.pcie_gen_current,
                  gpu.pcie_gen_max, gpu.pcie_width, "snd_hda_intel"},
                 loaded);
}

void SyncGpuInProc(Builder& tree, const SimState& state, const SimGpu& gpu) {
  const std::string folder = "proc/driver/nvidia/gpus/" + Address(gpu);
  if (gpu.removed || !state.loaded) return tree.Remove(folder);
  std::string text = std::string("Model: \t\t ") + gpu.name + "\nIRQ:   \t\t " + std::to_string(200 + gpu.minor) + "\nGPU UUID: \t " +
                     gpu.uuid + "\nVideo BIOS: \t " + gpu.vbios +
                     "\nBus Type: \t PCIe\nDMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\nBus Location: \t " + Address(gpu) +
                     "\nDevice Minor: \t " + std::to_string(gpu.minor) + "\n";
  if (gpu.gsp_mode != SIM_NA && state.driver_branch >= 510)
    text += std::string("GPU Firmware: \t ") + (gpu.gsp_mode ? state.driver_version : "N/A") + "\n";
  text += "GPU Excluded:\t No\n";
  tree.File(folder + "/information", text);
}

void SyncGpuInDev(Builder& tree, const SimState& state, const SimGpu& gpu) {
  const std::string path = "dev/nvidia" + std::to_string(gpu.minor);
  if (gpu.removed || !state.driver_version[0]) return tree.Remove(path);
  // Nodes outlive the driver, as real ones do.
  tree.Device(path, kNvidiaMajor, gpu.minor);
}

void SyncSharedDevices(Builder& tree, const SimState& state) {
  if (!state.driver_version[0]) {
    for (const auto* name : {"nvidiactl", "nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-caps"})
      tree.Remove(std::string("dev/") + name);
    return;
  }
  tree.Device("dev/nvidiactl", kNvidiaMajor, 255);
  tree.Device("dev/nvidia-modeset", kNvidiaMajor, 254);
  tree.Device("dev/nvidia-uvm", state.uvm_major, 0);
  tree.Device("dev/nvidia-uvm-tools", state.uvm_major, 1);
  tree.Device("dev/nvidia-caps/nvidia-cap1", state.caps_major, 1, 0400);
  tree.Device("dev/nvidia-caps/nvidia-cap2", state.caps_major, 2, 0444);
}

void SyncModule(Builder& tree, const SimState& state) {
  std::string devices = "Character devices:\n  1 mem\n  5 /dev/tty\n";
  if (state.loaded)
    devices += "195 nvidia\n195 nvidia-modeset\n195 nvidiactl\n" + std::to_string(state.uvm_major) + " nvidia-uvm\n" +
               std::to_string(state.caps_major) + " nvidia-caps\n";
  tree.File("proc/devices", devices + "\nBlock devices:\n259 blkext\n");
  if (!state.loaded) {
    for (const auto* name : {"nvidia", "nvidia_uvm", "nvidia_modeset"}) tree.Remove(std::string("sys/module/") + name);
    tree.Remove("sys/bus/pci/drivers/nvidia");
    tree.Remove("proc/driver/nvidia");
    return;
  }
  for (const auto* name : {"nvidia", "nvidia_uvm", "nvidia_modeset"}) {
    const std::string folder = std::string("sys/module/") + name;
    tree.File(folder + "/version", state.driver_version);
    tree.File(folder + "/initstate", "live");
    tree.File(folder + "/refcnt", "0");
  }
  tree.Folder("sys/bus/pci/drivers/nvidia");
  tree.File("proc/driver/nvidia/version", std::string("NVRM version: NVIDIA UNIX x86_64 Kernel Module  ") + state.driver_version +
                                              "  Tue Aug  3 20:44:16 UTC 2021\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n");
  tree.File("proc/driver/nvidia/params",
            "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: 0\nDeviceFileMode: 438\n");
  tree.File("proc/driver/nvidia/capabilities/mig/config", "DeviceFileMinor: 1\nDeviceFileMode: 256\nDeviceFileModify: 1\n", 0400);
  tree.File("proc/driver/nvidia/capabilities/mig/monitor", "DeviceFileMinor: 2\nDeviceFileMode: 292\nDeviceFileModify: 1\n");
}

// The library under its version, the name the loader looks for as a link to it, and no other version's.
void SyncLibraries(Builder& tree, const Assets& assets, const SimState& state) {
  const std::string folder = "usr/lib/x86_64-linux-gnu", version = state.library_version;
  const std::string keep = "libnvidia-ml.so." + version;
  std::error_code error;
  std::vector<std::string> others;
  for (fs::directory_iterator at(tree.Path(folder), error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename();
    if (name.starts_with("libnvidia-ml.so") && (version.empty() || (name != keep && name != "libnvidia-ml.so.1"))) others.push_back(name);
  }
  if (version.empty()) {
    for (const char* program : kPrograms) tree.Remove(std::string("usr/bin/") + program);
  } else if (!fs::exists(tree.Path(folder + "/" + keep), error)) {
    tree.Copy(assets.library_folder + "/libnvidia-ml.so.1", folder + "/" + keep,
              [&](const std::string& path) { return HideNewerSymbols(path, DriverBranch(version)); });
    for (const char* program : kPrograms) tree.Copy(assets.library_folder + "/" + program, std::string("usr/bin/") + program);
    tree.Link(folder + "/libnvidia-ml.so.1", keep);
  }
  for (const std::string& name : others) tree.Remove(folder + "/" + name);
}

void BuildHost(Builder& tree, const SimState& state) {
  tree.File("sys/class/dmi/id/product_name", state.product_name);
  tree.File("sys/class/dmi/id/sys_vendor", state.product_vendor);
  tree.File("sys/class/dmi/id/board_vendor", state.product_vendor);
  std::set<PciAddress> switches;
  for (std::uint32_t i = 0; i < state.gpu_count; i++) {
    for (const SimNvLink& link : state.gpus[i].nvlinks) {
      if (!link.active || link.remote_type != 2 || !switches.insert({link.remote_domain, link.remote_bus, link.remote_device}).second)
        continue;
      AddPciDevice(tree,
                   {ToString({link.remote_domain, link.remote_bus, link.remote_device}), link.remote_pci_id, 0x10de, 0x068000, -1, "", 4, 4,
                    1, "nvidia-nvswitch"},
                   state.loaded != 0);
    }
  }
}

// NUMA nodes as the GPUs and the machine file have them.
void BuildNodes(Builder& tree, const SimState& state) {
  std::string online;
  for (std::uint32_t i = 0; i < state.node_count; i++) {
    const std::string node = std::to_string(state.nodes[i].number);
    tree.File("sys/devices/system/node/node" + node + "/cpulist", state.nodes[i].cpu_list);
    online += (i ? "," : "") + node;
  }
  if (!online.empty()) tree.File("sys/devices/system/node/online", online);
}

}  // namespace

base::Result<TreeReport> SyncTree(const std::string& root, const Assets& assets, const SimState& state) {
  Builder tree(root);
  tree.Folder(".penstock-sim");
  tree.Folder("dev");
  tree.Folder("sys/bus/pci/devices");
  std::error_code error;
  if (!fs::exists(root + "/dev/kmsg", error)) tree.File("dev/kmsg", "", 0644);
  BuildHost(tree, state);
  BuildNodes(tree, state);
  SyncModule(tree, state);
  SyncLibraries(tree, assets, state);
  SyncSharedDevices(tree, state);
  for (std::uint32_t i = 0; i < state.gpu_count; i++) {
    SyncGpuInSys(tree, state.gpus[i], state.loaded != 0);
    SyncGpuInProc(tree, state, state.gpus[i]);
    SyncGpuInDev(tree, state, state.gpus[i]);
  }
  TRY(tree.status());
  return TreeReport{tree.can_make_devices()};
}

base::Status RemoveTree(const std::string& root) {
  std::error_code error;
  if (!fs::is_directory(root + "/.penstock-sim", error)) return base::Error(base::Code::kNotFound, "no simulated machine at " + root);
  // The parts we made; the folder itself only if nothing else is in it.
  for (const auto* part : {"dev", "sys", "proc", "usr", ".penstock-sim"}) {
    fs::remove_all(root + "/" + part, error);
    if (error) return base::ErrnoError(error.value(), "remove " + root + "/" + part);
  }
  fs::remove(root, error);
  return {};
}

namespace {

// As the kernel writes bytes that would end or disturb a record.
std::string Escape(std::string_view text) {
  std::string escaped;
  char code[8];
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 32 && byte < 127 && c != '\\') {
      escaped += c;
      continue;
    }
    std::snprintf(code, sizeof code, "\\x%02x", byte);
    escaped += code;
  }
  return escaped;
}

}  // namespace

base::Status AppendKernelLog(const std::string& root, std::string_view text) {
  const std::string path = root + "/dev/kmsg";
  const int fd = open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd < 0) return base::ErrnoError(errno, "open " + path);
  std::uint64_t sequence = 0;
  char buffer[8192];
  while (const ssize_t got = read(fd, buffer, sizeof buffer)) {
    if (got < 0) break;
    sequence += static_cast<std::uint64_t>(std::count(buffer, buffer + got, '\n'));
  }
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::string record =
      "4," + std::to_string(sequence) + "," + std::to_string(now.tv_sec * 1000000 + now.tv_nsec / 1000) + ",-;" + Escape(text) + "\n";
  const bool written = write(fd, record.data(), record.size()) == static_cast<ssize_t>(record.size());
  const int error = errno;
  close(fd);
  return written ? base::Status() : base::Status(base::ErrnoError(error, "write " + path));
}

}  // namespace penstock::sim
