// AMD's accelerators on this machine, from the files of KFD, DRM and PCI below /sys.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backend/amd/kfd.h"
#include "device/model.h"
#include "os/core/root.h"

namespace penstock::backend::amd {

/// The loaded driver, below /sys.
inline constexpr char kModule[] = "/module/amdgpu";

/// A node of KFD's topology as a part of a GPU; of an undivided GPU there is one.
struct Partition {
  unsigned xcp = 0;  ///< its number within the GPU
  KfdNode node;
  int number = 0;  ///< among all that programs see, by which AMD's tools call it
};

/// From a GPU to another, or from each of its partitions to the others.
struct GpuLink {
  std::size_t to = 0;  ///< index of that GPU
  bool xgmi = false;   ///< else PCIe
};

struct AmdGpu {
  std::string id;  ///< "GPU-e3aa1c5bd7b5f051", as ROCR_VISIBLE_DEVICES has it; see IdsOf
  device::PciAddress pci;
  int index = 0;
  std::vector<Partition> partitions;  ///< by number, at least one
  std::optional<int> numa_node;       ///< see Machine::NumaNode
  std::vector<GpuLink> links;         ///< see LinkGpus
};

/// Puts the nodes together to GPUs, by PCI function. `exists`: whether a PCI function is there:
/// drivers write the partition's number into the three bits of the function, or into the highest
/// four bits of the location.
///
/// A GPU's id is its unique_id. Where that is not known, as in virtual machines, or two GPUs have
/// the same, it is the PCI address: "GPU-0000:05:00.0".
std::vector<AmdGpu> GroupGpus(const std::vector<KfdNode>& nodes,
                              const std::function<bool(const device::PciAddress&)>& exists);

/// Sets the links of all GPUs. `links_of`: those of a node of KFD's topology.
///
/// KFD links every two partitions of two GPUs in the same way, by the hives of the GPUs and by what
/// their PCI functions reach (Linux, kfd_crat.c, kfd_fill_gpu_xgmi_link_to_gpu; kfd_topology.c,
/// kfd_dev_create_p2p_links). So the links of one partition of each GPU suffice: 63 partitions have
/// 4,000 files of them.
void LinkGpus(std::vector<AmdGpu>& gpus,
              const std::function<std::vector<KfdLink>(unsigned node)>& links_of);

/// The id of a partition of a GPU: all partitions have one unique_id.
std::string PartId(const AmdGpu& gpu, unsigned xcp);

/// "0000:05:00.0/3".
std::string PartAddress(const AmdGpu& gpu, unsigned xcp);

/// Evidence of a reading.
device::Evidence Standing(const AmdGpu& gpu, std::string_view kind, std::uint64_t code,
                          std::string text);

/// Files of one machine. Blocks. A file that is missing or that cannot be read is empty, and so is
/// a text that is not UTF-8.
class Machine {
 public:
  explicit Machine(os::Root sysfs) : sysfs_(std::move(sysfs)) {}

  const os::Root& sysfs() const { return sysfs_; }

  /// A file of text below /sys, without surrounding blanks.
  std::string File(const std::string& path) const;
  /// The same below the folder of a PCI function.
  std::string PciFile(const device::PciAddress& pci, const std::string& name) const;
  /// The bytes of such a file.
  base::Result<std::string> PciBytes(const device::PciAddress& pci, const std::string& name) const;
  std::vector<std::string> PciFolder(const device::PciAddress& pci, const std::string& name) const;
  bool Exists(const device::PciAddress& pci) const;
  /// Of the loaded driver, and of a folder of a PCI function, see os::FolderInstance; empty if
  /// there is no such folder.
  std::string ModuleInstance() const;
  std::string PciFolderInstance(const device::PciAddress& pci, const std::string& name) const;

  /// The NUMA node of a PCI function; nothing if it has none.
  std::optional<int> NumaNode(const device::PciAddress& pci) const;

  /// The card and the render node that belong together, in this order; the render node alone where
  /// DRM's folders are missing.
  std::vector<device::DeviceFile> DrmFiles(unsigned render_minor) const;

  /// The names of the cards that are not of these GPUs and their partitions, such as the BMC's, and
  /// how many there are of all.
  struct Cards {
    std::vector<std::string> others;
    std::size_t all = 0;
  };
  Cards DrmCards(const std::vector<AmdGpu>& gpus) const;

  /// /dev/kfd; nothing if KFD does not say its number.
  std::optional<device::DeviceFile> KfdFile() const;

  /// Whether an open file with these numbers, of /dev/kfd or in /dev/dri, keeps the driver in use:
  /// not those of other drivers' graphics cards. True where sysfs has no such device: it may have
  /// been removed while its file is open.
  bool UsesDriver(std::uint32_t major, std::uint32_t minor) const;

  /// The device files of these GPUs and of every possible partition, which exist from the time at
  /// which the driver was loaded (Linux, amdgpu_xcp_drv.c).
  std::vector<device::DeviceNumbers> Guarded(const std::vector<AmdGpu>& gpus) const;

  /// "SPX", "CPX"; empty: the GPU cannot be divided.
  std::string ComputeMode(const AmdGpu& gpu) const {
    return PciFile(gpu.pci, "current_compute_partition");
  }

  /// "NPS1", "NPS4"; empty: the GPU has none.
  std::string MemoryMode(const AmdGpu& gpu) const {
    return PciFile(gpu.pci, "current_memory_partition");
  }

 private:
  std::optional<device::DeviceFile> DrmFile(const std::string& folder,
                                            const std::string& name) const;
  const os::Root sysfs_;
};

}  // namespace penstock::backend::amd
