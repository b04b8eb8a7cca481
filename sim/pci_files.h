// What sysfs shows of a PCI device, whatever it is: its folder and the links to it.
#pragma once

#include <cstdint>
#include <string>

#include "sim/tree_builder.h"

namespace penstock::sim {

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

/// Where a device lies below sys/devices: its root complex (named after the bus, as firmware would number it), a port, itself.
std::string DevicePath(const std::string& address);

/// `loaded`: its driver is bound to it.
void AddPciDevice(TreeBuilder& tree, const PciDevice& device, bool loaded);
void RemovePciDevice(TreeBuilder& tree, const std::string& address);

}  // namespace penstock::sim
