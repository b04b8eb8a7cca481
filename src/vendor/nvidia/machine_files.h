// What the kernel's files say of NVIDIA devices: /dev, /proc/devices, sysfs. Calls no library.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/backend.h"
#include "device/model.h"

namespace penstock::vendor::nvidia {

/// Reads when asked; keeps nothing but the paths. Any thread.
class MachineFiles {
 public:
  explicit MachineFiles(device::Paths paths) : paths_(std::move(paths)) {}

  /// The file of a GPU, /dev/nvidia<minor>, whether it is there already or not: nvidia-modprobe makes it on first use.
  device::DeviceFile GpuFile(unsigned minor) const;

  /// Those of /dev/nvidiactl, nvidia-uvm, nvidia-uvm-tools and nvidia-modeset that are there.
  std::vector<device::DeviceFile> ControlFiles() const;

  /// Those of the kernel's graphics that lead to the same GPU: /dev/dri/card<n>, renderD<n>.
  std::vector<device::DeviceFile> GraphicsFiles(const device::PciAddress& pci) const;

  /// The numbers of all GPUs there can be, minors 0 to 253 of the NVIDIA major (nv-linux.h: 254 is modeset, 255 the control device), and of
  /// the capability files by which MIG devices are used and changed (/dev/nvidia-caps), where the driver has such.
  std::vector<device::DeviceNumbers> GuardedNumbers() const;

  /// NUMA node of a PCI function; nothing where the firmware does not say (-1).
  std::optional<int> NumaNode(const device::PciAddress& pci) const;

  /// Its near CPUs as a list: "0-15,64-79"; empty where not known.
  std::string NearCpus(const device::PciAddress& pci) const;

  /// "0x030200"; empty where not known.
  std::string PciClass(const device::PciAddress& pci) const;

  /// Whether it is a bridge that is no PCI bridge, as NVSwitches are (class 0x0680).
  bool IsSwitch(const device::PciAddress& pci) const;

  /// Version of the loaded kernel module. kNotFound where none is loaded; other errors where that cannot be told.
  base::Result<std::string> ModuleVersion() const;

 private:
  std::string PciFile(const device::PciAddress& pci, const char* name) const;
  std::map<std::string, std::uint32_t> Majors() const;
  std::uint32_t GpuMajor() const;

  device::Paths paths_;
};

}  // namespace penstock::vendor::nvidia
