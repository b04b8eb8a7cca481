// Builds and loads the BPF programs that decide which devices a control group's processes may open.
// The programs are assembled here, so that neither a compiler nor libbpf is needed.
#pragma once

#include <span>
#include <vector>

#include <linux/bpf.h>

#include "base/core/result.h"
#include "os/cgroup/cgroup.h"
#include "os/core/fd.h"

namespace penstock::os {

/// A BPF_PROG_TYPE_CGROUP_DEVICE program (kernel/bpf/cgroup.c): returns 1 to allow an access, 0 to
/// refuse it with EPERM. kInvalidArgument for too many ranges, or for a range whose last minor is
/// below its first.
base::Result<std::vector<bpf_insn>> BuildDeviceProgram(const DeviceRules& rules);

/// A program for a group that holds processes of many users. Refuses these devices to every process
/// except root of the machine's initial user namespace (by real uid, so that set-uid programs do
/// not count as root) and processes in a group whose id is in the map `admitted` (MakeIdMap).
base::Result<std::vector<bpf_insn>> BuildClosingProgram(std::span<const DeviceRange> devices,
                                                        int admitted);

/// MakeIdMap creates a kernel map of control group ids (bpf_get_current_cgroup_id); AddId and
/// RemoveId change it. Errors as for LoadDeviceProgram.
base::Result<UniqueFd> MakeIdMap();
base::Status AddId(int map, std::uint64_t id);
void RemoveId(int map, std::uint64_t id);

/// Loads a program into the kernel. kPermissionDenied and kUnimplemented name the missing
/// capability or kernel option.
base::Result<UniqueFd> LoadDeviceProgram(std::span<const bpf_insn> program);

/// How a group's device programs combine with device programs of its descendants.
enum class DevicePrograms {
  kNone,    ///< the group has none
  kBeside,  ///< they apply together with those of descendants (BPF_F_ALLOW_MULTI)
  kAlone,   ///< descendants may have none, or theirs apply instead (BPF_F_ALLOW_OVERRIDE)
};
base::Result<DevicePrograms> FindDevicePrograms(int group);

/// Attaches a program to a control group's open directory, in addition to those that other programs
/// attached, for as long as the group exists.
base::Status AttachDeviceProgram(int group, int program);

/// As AttachDeviceProgram, but only until the last descriptor of the returned link is closed,
/// including by the end of the process. kUnimplemented before Linux 5.7.
base::Result<UniqueFd> LinkDeviceProgram(int group, int program);

}  // namespace penstock::os
