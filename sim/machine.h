// Reads machine files and the model catalogue, which describe simulated machines. Strict reading
// only; creates nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "sim/mig_profiles.h"

namespace penstock::sim {

/// A PCI address; the function is always 0 for simulated devices.
struct PciAddress {
  std::uint32_t domain = 0, bus = 0, device = 0;
  auto operator<=>(const PciAddress&) const = default;
};

/// Returns "0000:07:00.0", as sysfs spells it.
std::string ToString(const PciAddress& address);
std::optional<PciAddress> ParsePciAddress(std::string_view text);

/// Facts of one GPU model, in the catalogue's units (MiB, W, MHz, °C). Empty for what the device
/// does not have.
struct Model {
  std::string name, old_name, brand, old_brand, architecture;
  int cc_major = 0, cc_minor = 0;
  std::uint32_t pci_id = 0, subsystem_id = 0, subsystem_vendor = 0x10de, pci_class = 0x030200;
  std::uint32_t multiprocessors = 0, cores_per_multiprocessor = 0;
  std::uint64_t memory_total = 0, memory_old = 0, memory_reserved = 0, bar1 = 0;
  std::uint32_t bus_bits = 0;
  std::uint32_t pcie_generation = 0, pcie_width = 0, pcie_idle_generation = 0;
  std::uint32_t nvlink_count = 0, nvlink_version = 0, nvlink_mbps = 0;
  std::uint32_t power_default = 0, power_min = 0, power_max = 0, power_idle = 0;
  std::uint32_t clock_sm = 0, clock_memory = 0, clock_video = 0, clock_idle_sm = 0,
                clock_idle_memory = 0;
  std::optional<std::uint32_t> clock_application;
  std::uint32_t idle_state = 0;
  bool limits_are_margins = false;
  int limit_shutdown = 0, limit_slowdown = 0, limit_max = 0, limit_memory = 0;
  std::uint32_t temperature_idle = 30;
  std::optional<std::uint32_t> temperature_memory;
  bool ecc = false, page_retirement = false, fabric = false;
  std::uint32_t remapper_banks = 0;
  std::uint32_t encoders = 0, decoders = 0, jpegs = 0, ofas = 0;
  MigModel mig;
  std::uint32_t fans = 0, fan_percent = 0;
  std::optional<std::uint32_t> gsp_since;
  std::string vbios, part_number, inforom;
};

using Catalogue = std::map<std::string, Model>;

struct MachineGpu {
  std::string model;
  PciAddress pci;
  int numa = -1;
  std::optional<int> pcie_switch;  // GPUs with the same number are behind the same switch
  std::optional<int> minor;
  std::string uuid, serial;  // generated if empty
  bool nvlinks_down = false;
  std::string vgpu_profile, vgpu_host_driver,
      vgpu_host_branch;  // set for a vGPU as its guest sees it; empty: a GPU
};

struct Machine {
  std::string name, description, product_vendor, product_name, driver;
  bool persistence = false;
  std::map<int, std::string> numa;  // node → CPU list
  std::vector<MachineGpu> gpus;
  std::uint32_t nvswitch_pci_id = 0;
  std::vector<PciAddress> nvswitches;
  bool hidden_nvswitches = false;  // there are some, but not as PCI devices
  std::uint32_t imex_channels = 0;
};

/// Reads the catalogue; an error lists all mistakes with file, line and column.
base::Result<Catalogue> ReadCatalogue(std::string_view text, std::string_view file);

/// Reads a machine file, whose models must be in the catalogue. Errors as for ReadCatalogue.
base::Result<Machine> ReadMachine(std::string_view text, std::string_view file,
                                  const Catalogue& catalogue);

/// Whether this is a driver version: "550.54.15", "595.80".
bool IsDriverVersion(std::string_view text);

}  // namespace penstock::sim
