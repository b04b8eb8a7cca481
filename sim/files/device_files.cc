#include "sim/files/device_files.h"

#include <string>

#include <unistd.h>

#include "sim/files/pci_files.h"

namespace penstock::sim {
namespace {

constexpr unsigned kNvidiaMajor = 195, kDrmMajor = 226, kFirstRenderMinor = 128;
constexpr gid_t kVideoGroup = 44;  // Debian's; the number of the group `render` differs between
                                   // machines
constexpr unsigned kOwnerAndGroup = 0660;

void SyncGpu(TreeBuilder& tree, const SimState& state, const SimGpu& gpu) {
  const std::string path = "dev/nvidia" + std::to_string(gpu.minor);
  if (gpu.removed || !state.driver_version[0]) return tree.Remove(path);
  tree.Device(path, kNvidiaMajor, gpu.minor);
}

// Adds a node, its folder below the GPU's in sysfs, and the link that names it by its PCI address.
void AddDrmNode(TreeBuilder& tree, const std::string& address, const std::string& name,
                unsigned minor_number, const char* kind) {
  tree.Device("dev/dri/" + name, kDrmMajor, minor_number, kOwnerAndGroup);
  (void)!chown(tree.Path("dev/dri/" + name).c_str(), 0,
               kVideoGroup);  // without root privileges, the files keep the user's group
  tree.Link("dev/dri/by-path/pci-" + address + "-" + kind, "../" + name);
  tree.File(DevicePath(address) + "/drm/" + name + "/dev",
            std::to_string(kDrmMajor) + ":" + std::to_string(minor_number));
}

// The first card is the board's own display.
void SyncDrm(TreeBuilder& tree, const SimState& state, const SimGpu& gpu) {
  const std::string address = ToString({gpu.domain, gpu.bus, gpu.device});
  const std::string card = "card" + std::to_string(gpu.minor + 1),
                    render = "renderD" + std::to_string(kFirstRenderMinor + gpu.minor);
  if (!gpu.removed && state.loaded) {
    AddDrmNode(tree, address, card, gpu.minor + 1, "card");
    AddDrmNode(tree, address, render, kFirstRenderMinor + gpu.minor, "render");
    return;
  }
  for (const std::string& path :
       {"dev/dri/" + card, "dev/dri/" + render, "dev/dri/by-path/pci-" + address + "-card",
        "dev/dri/by-path/pci-" + address + "-render", DevicePath(address) + "/drm"})
    tree.Remove(path);
}

void SyncShared(TreeBuilder& tree, const SimState& state) {
  tree.Device("dev/nvidiactl", kNvidiaMajor, 255);
  tree.Device("dev/nvidia-modeset", kNvidiaMajor, 254);
  tree.Device("dev/nvidia-uvm", state.uvm_major, 0);
  tree.Device("dev/nvidia-uvm-tools", state.uvm_major, 1);
  tree.Device("dev/nvidia-caps/nvidia-cap1", state.caps_major, 1, 0400);
  tree.Device("dev/nvidia-caps/nvidia-cap2", state.caps_major, 2, 0444);
  const auto switches = static_cast<unsigned>(SwitchesOf(state).size());
  if (switches > 0) tree.Device("dev/nvidia-nvswitchctl", state.nvswitch_major, 255);
  for (unsigned i = 0; i < switches; i++)
    tree.Device("dev/nvidia-nvswitch" + std::to_string(i), state.nvswitch_major, i);
  for (unsigned i = 0; i < state.imex_channels; i++)
    tree.Device("dev/nvidia-caps-imex-channels/channel" + std::to_string(i), state.imex_major, i);
}

void RemoveShared(TreeBuilder& tree, const SimState& state) {
  for (const auto* name : {"nvidiactl", "nvidia-modeset", "nvidia-uvm", "nvidia-uvm-tools",
                           "nvidia-caps", "nvidia-nvswitchctl", "nvidia-caps-imex-channels", "dri"})
    tree.Remove(std::string("dev/") + name);
  const std::size_t switches = SwitchesOf(state).size();
  for (std::size_t i = 0; i < switches; i++) tree.Remove("dev/nvidia-nvswitch" + std::to_string(i));
}

}  // namespace

std::map<PciAddress, std::uint32_t> SwitchesOf(const SimState& state) {
  constexpr std::uint32_t kToSwitch = 2;
  std::map<PciAddress, std::uint32_t> switches;
  for (std::uint32_t i = 0; i < state.gpu_count; i++)
    for (const SimNvLink& link : state.gpus[i].nvlinks)
      if (link.active && link.remote_type == kToSwitch && link.remote_pci_id)
        switches.emplace(PciAddress{link.remote_domain, link.remote_bus, link.remote_device},
                         link.remote_pci_id);
  return switches;
}

void SyncDevices(TreeBuilder& tree, const SimState& state) {
  if (state.driver_version[0])
    SyncShared(tree, state);
  else
    RemoveShared(tree, state);
  for (std::uint32_t i = 0; i < state.gpu_count; i++) {
    SyncGpu(tree, state, state.gpus[i]);
    SyncDrm(tree, state, state.gpus[i]);
  }
}

}  // namespace penstock::sim
