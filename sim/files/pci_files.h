// Creates what sysfs shows of any PCI device: its folder and the links to it.
#pragma once

#include <cstdint>
#include <string>

#include "sim/files/tree_builder.h"

namespace penstock::sim {

struct PciDevice {
  std::string address;
  std::uint32_t id, subsystem, pci_class;  // device << 16 | vendor
  int numa_node;
  std::string cpu_list;
  std::uint32_t generation, max_generation, width;
  const char* driver;
  std::uint64_t window = 0;                        // size of the window to the device's memory
  std::string vgpu_host_driver, vgpu_host_branch;  // ten characters at most
};

/// Returns the path of a device below sys/devices: its root complex (named after the bus, as
/// firmware would number it), a port, the device.
std::string DevicePath(const std::string& address);

/// `loaded`: the device's driver is bound to it.
void AddPciDevice(TreeBuilder& tree, const PciDevice& device, bool loaded);
void RemovePciDevice(TreeBuilder& tree, const std::string& address);

}  // namespace penstock::sim
