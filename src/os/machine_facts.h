// Reads facts about the machine: kernel, distribution, processor, PCI functions, product. Facts
// about accelerators are read elsewhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/core/result.h"

namespace penstock::os {

/// One PCI function, as sysfs describes it.
struct PciFunction {
  std::string address;  ///< "0000:07:00.0"
  std::uint16_t vendor = 0, device = 0;
  std::uint32_t class_code = 0;  ///< 24 bits: 0x030200
  /// The configuration space of display controllers, coprocessors and processing accelerators: 256
  /// bytes, or 64 without CAP_SYS_ADMIN. Empty for other functions: some devices malfunction when
  /// it is read.
  std::string config;
};

/// Facts that do not change until a reboot, except the PCI functions. Unknown facts are empty, 0 or
/// nothing.
struct MachineFacts {
  std::string product;                            ///< DMI product name; empty if there is none
  std::string kernel;                             ///< uname -r
  std::string os_id, os_version_id, os_codename;  ///< from os-release
  std::string cpu_vendor;                         ///< as NFD spells it: "Intel" for "GenuineIntel"
  int cpu_family = 0, cpu_model = 0;
  std::vector<std::string> cpu_flags;  ///< CPUID features by NFD's names: "AVX2"
  std::optional<bool> multithreading;  ///< whether any core runs more than one thread
  int numa_nodes = 0;
  std::vector<PciFunction> pci;
};

/// Paths to read from: in a container, the machine's os-release is mounted at another path than the
/// container's own.
struct MachinePaths {
  std::string sysfs_root = "/sys";
  std::string proc_root = "/proc";
  std::string os_release = "/etc/os-release";
  std::string product_file = "/sys/class/dmi/id/product_name";
};

/// Reads all facts: DMI, uname, os-release, CPUID or /proc/cpuinfo, sysfs. Blocks.
MachineFacts ReadMachineFacts(const MachinePaths& paths);

/// The PCI functions that are present now, ordered by address; hot-plugging changes them. Blocks:
/// with their configuration also for the time of a reset, and what sleeps is woken up.
std::vector<PciFunction> ReadPciFunctions(const std::string& sysfs_root, bool with_config = true);

/// The kernel driver that a PCI function ("0000:07:00.0") is bound to: "vfio-pci"; empty if it is
/// bound to none, nothing if there is no such function. Does not block.
std::optional<std::string> ReadPciDriver(const std::string& sysfs_root, const std::string& address);

}  // namespace penstock::os
