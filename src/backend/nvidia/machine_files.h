// What the kernel's files (/dev, /proc/devices, sysfs) say of NVIDIA devices. Calls no library.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "device/backend.h"
#include "device/model.h"

namespace penstock::backend::nvidia {

/// Reads on each call; keeps only the paths. Any thread.
class MachineFiles {
 public:
  explicit MachineFiles(device::Paths paths) : paths_(std::move(paths)) {}

  /// The file of a GPU, /dev/nvidia<minor>, whether or not it exists yet: nvidia-modprobe creates
  /// it on first use.
  device::DeviceFile GpuFile(unsigned minor) const;

  /// Those of /dev/nvidiactl, nvidia-uvm, nvidia-uvm-tools and nvidia-modeset that exist.
  std::vector<device::DeviceFile> ControlFiles() const;

  /// The kernel's graphics files of the same GPU: /dev/dri/card<n>, renderD<n>.
  std::vector<device::DeviceFile> GraphicsFiles(const device::PciAddress& pci) const;

  /// The files that permit their holders to use a compute instance of a GPU: that of its GPU
  /// instance and its own (NVIDIA, "MIG User Guide", "/dev based nvidia-capabilities"). Empty where
  /// the driver does not list them. Creates missing ones, as nvidia-modprobe does where a program
  /// of the machine uses them first: a container that gets them needs them before.
  std::vector<device::DeviceFile> CapabilityFiles(unsigned gpu_minor, unsigned gpu_instance,
                                                  unsigned compute_instance) const;

  /// The device numbers of all possible GPUs, minors 0 to 253 of the NVIDIA major (nv-linux.h: 254
  /// is modeset, 255 the control device), and of the capability files that permit the use and
  /// change of MIG devices (/dev/nvidia-caps), if the driver has them.
  std::vector<device::DeviceNumbers> GuardedNumbers() const;

  /// NUMA node of a PCI function; nothing if the firmware does not report it (-1).
  std::optional<int> NumaNode(const device::PciAddress& pci) const;

  /// The function's local CPUs as a list: "0-15,64-79"; empty if unknown.
  std::string NearCpus(const device::PciAddress& pci) const;

  /// "0x030200"; empty if unknown.
  std::string PciClass(const device::PciAddress& pci) const;

  /// Whether it is a bridge but not a PCI bridge, as NVSwitches are (class 0x0680).
  bool IsSwitch(const device::PciAddress& pci) const;

  /// Version of the loaded kernel module. kNotFound: none is loaded; other errors: the version
  /// cannot be determined.
  base::Result<std::string> ModuleVersion() const;

 private:
  std::string PciFile(const device::PciAddress& pci, const char* name) const;
  std::map<std::string, std::uint32_t> Majors() const;
  std::uint32_t GpuMajor() const;

  device::Paths paths_;
};

}  // namespace penstock::backend::nvidia
