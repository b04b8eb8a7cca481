// The topology that amdgpu's compute driver (KFD) shows in sysfs: read without opening /dev/kfd,
// which would make this process one that keeps partitions and the driver from changing for as long
// as it lives.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/quantity.h"
#include "base/core/result.h"
#include "device/model.h"
#include "os/core/root.h"

namespace penstock::backend::amd {

/// Lines "name value"; values are decimal and unsigned, also above 2^63. Other lines are left out.
using Properties = std::map<std::string, std::uint64_t, std::less<>>;
Properties ParseProperties(std::string_view text);

/// A connection to another node (io_links, p2p_links).
struct KfdLink {
  unsigned to = 0;
  bool xgmi = false;  ///< between packages or within one; else PCIe. No other type links GPUs
};

/// A GPU, or a partition of one.
struct KfdNode {
  unsigned number = 0;
  std::uint64_t gpu_id = 0;     ///< by which KFD's list of processes calls it; 0: unknown
  std::uint64_t unique_id = 0;  ///< that of the GPU, also of its partitions; 0: unknown
  std::uint64_t hive_id = 0;    ///< same for all GPUs that xGMI links; 0: none
  std::uint32_t domain = 0, location = 0;
  std::uint32_t device_id = 0;
  unsigned render_minor = 0;
  int compute_units = 0;
  int simds = 0;
  unsigned gfx = 0;  ///< 90402 for gfx942
  base::Bytes memory;
};

struct Topology {
  std::string generation;  ///< changes when the topology does
  std::vector<KfdNode> gpus;
  /// Nodes that refuse to be read: the device cgroup of this process lacks the rule for their
  /// render node (K612 kfd_topology.c, kfd_devcgroup_check_permission).
  std::vector<unsigned> refused;
};

/// Only the number of the topology: cheap.
base::Result<std::string> ReadGeneration(const os::Root& sysfs);

/// kNotFound: there is no KFD. Nodes without GPU, and those that lack what a device needs, are left
/// out. Blocks.
base::Result<Topology> ReadTopology(const os::Root& sysfs);

/// The links of a node to others, also to those that Topology leaves out. Blocks.
std::vector<KfdLink> ReadLinks(const os::Root& sysfs, unsigned node);

/// A process that has opened /dev/kfd.
struct KfdProcess {
  std::int32_t pid = 0;
  /// Memory by gpu_id, of the GPUs and partitions on which it has memory or a queue. KFD has an
  /// entry for each GPU that the process's device cgroup permits, which is no use yet.
  std::map<std::uint64_t, base::Bytes> on;
};

/// Blocks.
std::vector<KfdProcess> ReadProcesses(const os::Root& sysfs);

/// "gfx942": the last two digits of the number are hexadecimal in LLVM's name.
std::string GfxName(unsigned gfx);

/// Of Instinct accelerators: "cdna3"; empty for other GPUs.
std::string InstinctArchitecture(unsigned gfx);

}  // namespace penstock::backend::amd
