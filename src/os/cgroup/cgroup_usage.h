// Reads the processor time and memory of control groups' processes, in both versions of the cgroup
// interface. Changes nothing.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/clock.h"
#include "base/core/quantity.h"

namespace penstock::os {

/// Mount points of the hierarchies that account for what groups use; empty if there is none. On a
/// machine with only the unified hierarchy, it contains everything
/// (Documentation/admin-guide/cgroup-v2.rst); v1 has one hierarchy per controller
/// (cgroup-v1/{cpuacct,memory}.rst).
struct CgroupMounts {
  std::string unified, cpu, memory;
  std::string own;  ///< the first mount of the unified hierarchy, in which the agent creates groups
  std::string own_root;  ///< the group that this mount shows; "/" if it shows all of this process's
                         ///< namespace
  bool operator==(const CgroupMounts&) const = default;
};

/// Parses the text of /proc/PID/mountinfo (proc(5)). Of several mounts of a hierarchy, the one that
/// shows most of it is used: in a container, the machine's own mount if it exists beside the
/// container's.
CgroupMounts ParseCgroupMounts(std::string_view mountinfo);

/// A group's folders in these hierarchies; empty if it has no folder of its own there.
struct CgroupPlace {
  std::string unified, cpu, memory;
  bool empty() const { return unified.empty() && cpu.empty() && memory.empty(); }
  bool operator==(const CgroupPlace&) const = default;
};

/// Finds the group that a process is in or below, from the text of its /proc/PID/cgroup
/// (cgroups(7)). `cut` takes the process's path in a hierarchy and returns the path of the wanted
/// group, or an empty string if that group is not an ancestor. Blocks if a path leads out of this
/// process's cgroup namespace: the group is then searched for among Kubernetes' groups.
CgroupPlace FindCgroup(std::string_view text, const CgroupMounts& mounts,
                       const std::function<std::string(const std::string&)>& cut);

/// What could be read; all empty for a group that no longer exists.
struct CgroupUsage {
  std::optional<base::Duration> cpu;  ///< user and system time since the group was created
  std::optional<base::Bytes> memory;  ///< current use, as the kernel charges it: including page
                                      ///< cache
  std::optional<base::Bytes> memory_peak;
};

/// Any thread; a few reads of kernel memory. `proc` is the root of the proc file system: where no
/// controller counts the memory, the anonymous memory of the group's processes (resident pages not
/// shared with files) is summed instead.
CgroupUsage ReadCgroupUsage(const CgroupPlace& place, const std::string& proc);

}  // namespace penstock::os
