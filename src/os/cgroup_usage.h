// What control groups say of the processor time and the memory of their processes, in both versions of the interface. Changes nothing.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/clock.h"
#include "base/core/quantity.h"

namespace penstock::os {

/// Where the hierarchies are mounted that count what groups use; empty: there is none. On a machine with the unified hierarchy alone all
/// is in there (Documentation/admin-guide/cgroup-v2.rst), else v1 has one for each controller (cgroup-v1/{cpuacct,memory}.rst).
struct CgroupMounts {
  std::string unified, cpu, memory;
  std::string own;       ///< the unified hierarchy as we make groups in it: the mount that comes first
  std::string own_root;  ///< the group that this mount shows, "/" for all of our control group namespace
  bool operator==(const CgroupMounts&) const = default;
};

/// From the text of /proc/PID/mountinfo (proc(5)). Of several mounts of a hierarchy the one counts that shows most of it: in a container
/// the machine's own, where it is mounted beside the container's.
CgroupMounts ParseCgroupMounts(std::string_view mountinfo);

/// A group's folders in these hierarchies; empty: there it has none of its own.
struct CgroupPlace {
  std::string unified, cpu, memory;
  bool empty() const { return unified.empty() && cpu.empty() && memory.empty(); }
  bool operator==(const CgroupPlace&) const = default;
};

/// The group that a process is in or below, by the text of its /proc/PID/cgroup (cgroups(7)). `cut` gets the process' path in a hierarchy
/// and answers the path of the group that is meant, empty where it is not on the way. Blocks where a path leads out of our own cgroup
/// namespace: then it is looked for among Kubernetes' groups.
CgroupPlace FindCgroup(std::string_view text, const CgroupMounts& mounts, const std::function<std::string(const std::string&)>& cut);

/// What could be read: nothing of a group that has gone.
struct CgroupUsage {
  std::optional<base::Duration> cpu;  ///< user and system time since the group was made
  std::optional<base::Bytes> memory;  ///< now, as the kernel charges it: page cache included
  std::optional<base::Bytes> memory_peak;
};

/// Any thread; a few reads of kernel memory. `proc` is the proc file system's root: where no controller counts the memory, that of the
/// group's processes is taken, as far as they share it with no file.
CgroupUsage ReadCgroupUsage(const CgroupPlace& place, const std::string& proc);

}  // namespace penstock::os
