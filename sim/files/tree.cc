#include "sim/files/tree.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "sim/files/device_files.h"
#include "sim/files/driver_files.h"
#include "sim/files/pci_files.h"
#include "sim/files/tree_builder.h"
#include "sim/machine.h"
#include "sim/mig.h"
#include "sim/mig_files.h"

namespace penstock::sim {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModules[] = {"nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm"};

std::string Address(const SimGpu& gpu) { return ToString({gpu.domain, gpu.bus, gpu.device}); }

// GeForce boards also have an audio function.
std::string AudioAddress(const SimGpu& gpu) {
  std::string address = Address(gpu);
  address.back() = '1';
  return address;
}

void SyncGpuInSys(TreeBuilder& tree, const SimGpu& gpu, bool loaded) {
  const bool has_audio = gpu.pci_class == 0x030000;
  if (gpu.removed) {
    RemovePciDevice(tree, Address(gpu));
    if (has_audio) RemovePciDevice(tree, AudioAddress(gpu));
    return;
  }
  AddPciDevice(tree,
               {Address(gpu), gpu.pci_id, gpu.subsystem_id, gpu.pci_class, gpu.numa_node,
                gpu.cpu_list, gpu.pcie_gen_current, gpu.pcie_gen_max, gpu.pcie_width, "nvidia",
                gpu.bar1_total, gpu.vgpu_host_driver, gpu.vgpu_host_branch},
               loaded);
  if (has_audio)
    AddPciDevice(
        tree,
        {AudioAddress(gpu), 0x1aef10de, gpu.subsystem_id, 0x040300, gpu.numa_node, gpu.cpu_list,
         gpu.pcie_gen_current, gpu.pcie_gen_max, gpu.pcie_width, "snd_hda_intel"},
        loaded);
}

void SyncGpuInProc(TreeBuilder& tree, const SimState& state, const SimGpu& gpu) {
  const std::string folder = "proc/driver/nvidia/gpus/" + Address(gpu);
  const std::string instances = "proc/driver/nvidia/capabilities/gpu" + std::to_string(gpu.minor);
  if (gpu.removed || !state.loaded) {
    tree.Remove(folder);
    return tree.Remove(instances);
  }
  if (SimHasMig(&gpu) && state.driver_branch >= 450) tree.Folder(instances + "/mig");
  std::string text =
      std::string("Model: \t\t ") + gpu.name + "\nIRQ:   \t\t " + std::to_string(200 + gpu.minor) +
      "\nGPU UUID: \t " + gpu.uuid + "\nVideo BIOS: \t " + gpu.vbios +
      "\nBus Type: \t PCIe\nDMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\nBus Location: \t " +
      Address(gpu) + "\nDevice Minor: \t " + std::to_string(gpu.minor) + "\n";
  if (gpu.gsp_mode != SIM_NA && state.driver_branch >= 510)
    text += std::string("GPU Firmware: \t ") + (gpu.gsp_mode ? state.driver_version : "N/A") + "\n";
  text += "GPU Excluded:\t No\n";
  tree.File(folder + "/information", text);
}

// Returns the numbers of every device file that an instance of any GPU could have.
std::string MigMinors() {
  std::string text = "config 1\nmonitor 2\n";
  const auto add = [&text](const std::string& name, std::uint32_t number) {
    text += name + "/access " + std::to_string(number) + "\n";
  };
  for (std::uint32_t gpu = 0; gpu < kSimCapabilityGpus; gpu++) {
    for (std::uint32_t instance = 0; instance < kSimGpuInstances; instance++) {
      const std::string name = "gpu" + std::to_string(gpu) + "/gi" + std::to_string(instance);
      add(name, SimCapabilityMinor(gpu, instance, SIM_NA));
      for (std::uint32_t compute = 0; compute < kSimComputeInstances; compute++)
        add(name + "/ci" + std::to_string(compute), SimCapabilityMinor(gpu, instance, compute));
    }
  }
  return text;
}

std::string ProcDevices(const SimState& state) {
  std::string text = "Character devices:\n  1 mem\n  5 /dev/tty\n";
  if (state.loaded) {
    const auto add = [&](std::uint32_t major_number, const char* name) {
      text += std::to_string(major_number) + " " + name + "\n";
    };
    for (const char* name : {"nvidia", "nvidia-modeset", "nvidiactl"}) add(195, name);
    add(226, "drm");
    if (state.imex_channels > 0) add(state.imex_major, "nvidia-caps-imex-channels");
    if (!SwitchesOf(state).empty()) add(state.nvswitch_major, "nvidia-nvswitch");
    add(state.uvm_major, "nvidia-uvm");
    add(state.caps_major, "nvidia-caps");
  }
  return text + "\nBlock devices:\n259 blkext\n";
}

// Creates what nvidia-modprobe reads about a device file; every user may read it.
void Capability(TreeBuilder& tree, const std::string& name, std::uint32_t minor_number,
                unsigned mode) {
  tree.File("proc/driver/nvidia/capabilities/" + name,
            "DeviceFileMinor: " + std::to_string(minor_number) +
                "\nDeviceFileMode: " + std::to_string(mode) + "\nDeviceFileModify: 1\n");
}

void SyncModule(TreeBuilder& tree, const SimState& state) {
  tree.File("proc/devices", ProcDevices(state));
  if (!state.loaded) {
    for (const auto* name : kModules) tree.Remove(std::string("sys/module/") + name);
    for (const auto* path :
         {"sys/bus/pci/drivers/nvidia", "proc/driver/nvidia", "proc/driver/nvidia-caps"})
      tree.Remove(path);
    return;
  }
  for (const auto* name : kModules) {
    const std::string folder = std::string("sys/module/") + name;
    tree.File(folder + "/version", state.driver_version);
    tree.File(folder + "/initstate", "live");
    tree.File(folder + "/refcnt", "0");
  }
  tree.Folder("sys/bus/pci/drivers/nvidia");
  tree.File(
      "proc/driver/nvidia/version",
      std::string("NVRM version: NVIDIA UNIX x86_64 Kernel Module  ") + state.driver_version +
          "  Tue Aug  3 20:44:16 UTC 2021\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n");
  tree.File("proc/driver/nvidia/params",
            "ResmanDebugLevel: 4294967295\nModifyDeviceFiles: 1\nDeviceFileUID: 0\nDeviceFileGID: "
            "0\nDeviceFileMode: 438\n");
  if (state.driver_branch < 450) return;
  tree.File("proc/driver/nvidia-caps/mig-minors", MigMinors());
  Capability(tree, "mig/config", 1, 0400);
  Capability(tree, "mig/monitor", 2, 0444);
  if (state.driver_branch < 550) return;
  const std::uint32_t first_other = SimCapabilityMinor(kSimCapabilityGpus, 0, SIM_NA);
  tree.File("proc/driver/nvidia-caps/nvlink-minors", "fabric-mgmt 0");
  tree.File("proc/driver/nvidia-caps/sys-minors",
            "fabric-imex-mgmt " + std::to_string(first_other));
  Capability(tree, "fabric-imex-mgmt", first_other, 0400);
}

// Creates the sockets that the driver's daemons leave while they run; no process listens on them.
void SyncDaemons(TreeBuilder& tree, const SimState& state) {
  constexpr const char* kPersistence = "run/nvidia-persistenced/socket";
  constexpr const char* kFabric = "run/nvidia-fabricmanager/socket";
  const bool persistent = std::any_of(state.gpus, state.gpus + state.gpu_count,
                                      [](const SimGpu& gpu) { return gpu.persistence == 1; });
  const auto sync = [&](const char* path, bool wanted) {
    if (wanted)
      tree.Socket(path);
    else if (tree.Exists(path))
      tree.Remove(path);
  };
  sync(kPersistence, state.loaded && persistent);
  sync(kFabric, state.loaded && !SwitchesOf(state).empty());
}

void SyncFiles(TreeBuilder& tree, const Assets& assets, const SimState& state) {
  if (!tree.Exists(kFilesElsewhere)) {
    SyncDriverFiles(tree, assets, state);
    SyncFirmware(tree, state);
    return;
  }
  const auto without = std::make_unique<SimState>(state);
  std::memset(without->library_version, 0, sizeof without->library_version);
  SyncDriverFiles(tree, assets, *without);
  SyncFirmware(tree, *without);
}

void BuildHost(TreeBuilder& tree, const SimState& state) {
  tree.File("sys/class/dmi/id/product_name", state.product_name);
  tree.File("sys/class/dmi/id/sys_vendor", state.product_vendor);
  tree.File("sys/class/dmi/id/board_vendor", state.product_vendor);
  for (const auto& [address, id] : SwitchesOf(state))
    AddPciDevice(tree,
                 {ToString(address), id, 0x10de, 0x068000, -1, "", 4, 4, 1, "nvidia-nvswitch"},
                 state.loaded != 0);
}

// Creates the NUMA nodes of the GPUs and of the machine file.
void BuildNodes(TreeBuilder& tree, const SimState& state) {
  std::string online;
  for (std::uint32_t i = 0; i < state.node_count; i++) {
    const std::string node = std::to_string(state.nodes[i].number);
    tree.File("sys/devices/system/node/node" + node + "/cpulist", state.nodes[i].cpu_list);
    online += (i ? "," : "") + node;
  }
  if (!online.empty()) tree.File("sys/devices/system/node/online", online);
}

}  // namespace

// Files that other programs watch come last, so that the other files exist when they change.
base::Result<TreeReport> SyncTree(const std::string& root, const Assets& assets,
                                  const SimState& state) {
  TreeBuilder tree(root);
  tree.Folder(".penstock-sim");
  tree.Folder("dev");
  tree.Folder("sys/bus/pci/devices");
  if (!tree.Exists("dev/kmsg")) tree.File("dev/kmsg", "", 0644);
  SyncDevices(tree, state);
  SyncFiles(tree, assets, state);
  SyncDaemons(tree, state);
  BuildHost(tree, state);
  BuildNodes(tree, state);
  SyncModule(tree, state);
  for (std::uint32_t i = 0; i < state.gpu_count; i++) {
    SyncGpuInSys(tree, state.gpus[i], state.loaded != 0);
    SyncGpuInProc(tree, state, state.gpus[i]);
  }
  TRY(tree.status());
  return TreeReport{tree.can_make_devices()};
}

base::Status NameState(const std::string& root, const SimState& state) {
  TreeBuilder tree(root);
  SyncFirmware(tree, state);
  return tree.status();
}

base::Status RemoveTree(const std::string& root) {
  std::error_code error;
  if (!fs::is_directory(root + "/.penstock-sim", error))
    return base::Error(base::Code::kNotFound, "no simulated machine at " + root);
  // Remove the parts that penstock-sim made; remove the folder itself only if nothing else is in
  // it.
  for (const auto* part : {"dev", "sys", "proc", "usr", "lib", "etc", "run", ".penstock-sim"}) {
    fs::remove_all(root + "/" + part, error);
    if (error) return base::ErrnoError(error.value(), "remove " + root + "/" + part);
  }
  fs::remove(root, error);
  return {};
}

namespace {

// Escapes bytes that would end or corrupt a record, as the kernel does.
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
  const std::string record = "4," + std::to_string(sequence) + "," +
                             std::to_string(now.tv_sec * 1000000 + now.tv_nsec / 1000) + ",-;" +
                             Escape(text) + "\n";
  const bool written =
      write(fd, record.data(), record.size()) == static_cast<ssize_t>(record.size());
  const int error = errno;
  close(fd);
  return written ? base::Status() : base::Status(base::ErrnoError(error, "write " + path));
}

}  // namespace penstock::sim
