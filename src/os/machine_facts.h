// What kind of machine this is: kernel, distribution, processor, PCI functions, product. No accelerator in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/core/result.h"

namespace penstock::os {

/// One PCI function as sysfs tells it.
struct PciFunction {
  std::string address;  ///< "0000:07:00.0"
  std::uint16_t vendor = 0, device = 0;
  std::uint32_t class_code = 0;  ///< 24 bits: 0x030200
  /// Of display controllers, coprocessors and processing accelerators: the configuration space, 256 bytes; 64 without rights
  /// (CAP_SYS_ADMIN). Empty for others: there are devices that do not bear being read.
  std::string config;
};

/// Facts that stay as they are until a reboot, PCI excepted. What is not known is empty, 0 or nothing.
struct MachineFacts {
  std::string product;                            ///< DMI product name; empty where there is none
  std::string kernel;                             ///< uname -r
  std::string os_id, os_version_id, os_codename;  ///< of os-release
  std::string cpu_vendor;                         ///< "GenuineIntel", as NFD says it: "Intel"
  int cpu_family = 0, cpu_model = 0;
  std::vector<std::string> cpu_flags;  ///< CPUID features by the names that NFD uses: "AVX2"
  std::optional<bool> multithreading;  ///< whether some core runs more than one thread
  int numa_nodes = 0;
  std::vector<PciFunction> pci;
};

/// Where it is read: in a container the machine's own os-release lies elsewhere than the container's.
struct MachinePaths {
  std::string sysfs_root = "/sys";
  std::string proc_root = "/proc";
  std::string os_release = "/etc/os-release";
  std::string product_file = "/sys/class/dmi/id/product_name";
};

/// All of them: DMI, uname, os-release, CPUID or /proc/cpuinfo, sysfs. Blocks.
MachineFacts ReadMachineFacts(const MachinePaths& paths);

/// The PCI functions that there are now, by address: what changes with hot-plugging. Blocks.
std::vector<PciFunction> ReadPciFunctions(const std::string& sysfs_root);

}  // namespace penstock::os
