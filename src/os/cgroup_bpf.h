// The BPF program that decides which devices a control group's processes may open. Assembled here, so that no compiler and no libbpf is
// needed.
#pragma once

#include <span>
#include <vector>

#include <linux/bpf.h>

#include "base/core/result.h"
#include "os/cgroup.h"
#include "os/core/fd.h"

namespace penstock::os {

/// A BPF_PROG_TYPE_CGROUP_DEVICE program (kernel/bpf/cgroup.c): answers 1 to allow an access, 0 to refuse it with EPERM.
/// kInvalidArgument for too many ranges, or one whose last minor is before its first.
base::Result<std::vector<bpf_insn>> BuildDeviceProgram(const DeviceRules& rules);

/// A program for a group with processes of many: refuses these devices to whoever is neither root of the machine's own user namespace (by
/// the real uid, so that what is set-uid root does not count) nor in a group whose id is in the map (MakeIdMap).
base::Result<std::vector<bpf_insn>> BuildClosingProgram(std::span<const DeviceRange> devices, int admitted);

/// A map of the kernel with ids of control groups (bpf_get_current_cgroup_id), and an id that is put into it. Errors as
/// LoadDeviceProgram's.
base::Result<UniqueFd> MakeIdMap();
base::Status AddId(int map, std::uint64_t id);
void RemoveId(int map, std::uint64_t id);

/// Gives a program to the kernel. kPermissionDenied and kUnimplemented say which capability or kernel option is missing.
base::Result<UniqueFd> LoadDeviceProgram(std::span<const bpf_insn> program);

/// What a group's own device programs leave to those of groups below it.
enum class DevicePrograms {
  kNone,    ///< there are none
  kBeside,  ///< they hold beside those of groups below (BPF_F_ALLOW_MULTI)
  kAlone,   ///< groups below may have none, or theirs hold instead (BPF_F_ALLOW_OVERRIDE)
};
base::Result<DevicePrograms> FindDevicePrograms(int group);

/// Attaches it to a control group's open directory, beside what others have attached, for as long as the group exists.
base::Status AttachDeviceProgram(int group, int program);

/// Likewise, until the last descriptor of the link is closed, by the end of a process too. kUnimplemented before Linux 5.7.
base::Result<UniqueFd> LinkDeviceProgram(int group, int program);

}  // namespace penstock::os
