#include "sim/files/pci_files.h"

#include <cstdio>

#include "base/core/strings.h"

namespace penstock::sim {
namespace {

std::string Hex(std::uint32_t value, int digits) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%0*x", digits, value);
  return text;
}

const char* LinkSpeed(std::uint32_t generation) {
  constexpr const char* kSpeeds[] = {"Unknown",       "2.5 GT/s PCIe",  "5.0 GT/s PCIe",
                                     "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe",
                                     "64.0 GT/s PCIe"};
  return kSpeeds[generation <= 6 ? generation : 0];
}

// Returns the relative path from a device folder up to sys/.
std::string UpToSys(const std::string& device_path) {
  std::string up;
  for (std::size_t depth = base::Split(device_path, '/').size(); depth > 1; depth--) up += "../";
  return up;
}

void PutWord(std::string& bytes, std::size_t at, std::uint32_t value, int length) {
  for (int i = 0; i < length; i++)
    bytes[at + static_cast<std::size_t>(i)] = static_cast<char>(value >> (8 * i));
}

// Returns the first 256 bytes: the header and NVIDIA's usual chain of capabilities. The last
// capability is the vendor's own; in a guest, a vGPU's contains "VF" and the host's driver.
std::string ConfigSpace(const PciDevice& device) {
  constexpr std::size_t kVendorCapability = 0xb4;
  std::string bytes(256, '\0');
  PutWord(bytes, 0x00, device.id & 0xffff, 2);
  PutWord(bytes, 0x02, device.id >> 16, 2);
  PutWord(bytes, 0x04, 0x0406, 2);
  PutWord(bytes, 0x06, 0x0010, 2);  // status: has capabilities
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

// Returns the regions as sysfs lists them (start, end, flags): registers, the window to the memory,
// and a third one. The addresses are invented.
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
    std::snprintf(line, sizeof line, "0x%016llx 0x%016llx 0x%016llx\n",
                  static_cast<unsigned long long>(start),
                  static_cast<unsigned long long>(size ? start + size - 1 : 0),
                  static_cast<unsigned long long>(size ? flags : 0));
    text += line;
  }
  return text;
}

}  // namespace

std::string DevicePath(const std::string& address) {
  const std::string domain_bus = address.substr(0, 7);
  if (domain_bus.ends_with(":00")) return "sys/devices/pci" + domain_bus + "/" + address;
  std::string root = domain_bus;
  root.back() = '0';  // 07 is below 00, 4e is below 40
  return "sys/devices/pci" + root + "/" + root + ":01.1/" + address;
}

void AddPciDevice(TreeBuilder& tree, const PciDevice& device, bool loaded) {
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
  std::snprintf(text, sizeof text,
                "%sPCI_CLASS=%X\nPCI_ID=%04X:%04X\nPCI_SUBSYS_ID=%04X:%04X\nPCI_SLOT_NAME=%s\n",
                loaded ? "DRIVER=nvidia\n" : "", device.pci_class, device.id & 0xffff,
                device.id >> 16, device.subsystem & 0xffff, device.subsystem >> 16,
                device.address.c_str());
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

void RemovePciDevice(TreeBuilder& tree, const std::string& address) {
  tree.Remove("sys/bus/pci/devices/" + address);
  tree.Remove("sys/bus/pci/drivers/nvidia/" + address);
  tree.Remove(DevicePath(address));
}

}  // namespace penstock::sim
