// Control groups of our own, in the unified hierarchy (cgroup v2, pure or beside v1): membership, device rules by BPF, notice of emptiness.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/core/result.h"
#include "os/core/fd.h"

namespace penstock::os {

/// Character devices that a group's processes may not open, minor by minor (first to last, inclusive).
struct DeviceRange {
  std::uint32_t major = 0;
  std::uint32_t first_minor = 0;
  std::uint32_t last_minor = 0;
  bool operator==(const DeviceRange&) const = default;
};

/// As many ranges, guarded and admitted together, as every kernel since 4.15 takes in one program.
inline constexpr std::size_t kMostDeviceRanges = 800;

/// What a group admits: everything but `guarded`, of which only `admitted` may be opened for reading or writing. Making a device file is
/// not opening the device, and stays allowed.
struct DeviceRules {
  std::vector<DeviceRange> guarded;
  std::vector<DeviceRange> admitted;
};

/// The group of a process in the unified hierarchy, as our control group namespace names it: "/user.slice/user-1000.slice/session-3.scope".
/// kNotFound where the process is gone or the machine has no such hierarchy. `proc` is the proc file system's root.
base::Result<std::string> ReadUnifiedCgroup(const std::string& proc, pid_t pid);

/// The unified hierarchy of this machine as we may use it. One thread; calls block for microseconds.
class CgroupTree {
 public:
  /// Finds the cgroup2 mount (/sys/fs/cgroup, or /sys/fs/cgroup/unified on hybrid machines) and proves, once, in a group of its own that is
  /// removed again, that we may create groups there and attach device programs. Errors say which right is missing.
  static base::Result<CgroupTree> Open(const std::string& group_name);

  /// The directory of our groups for processes that are in no group but the root: "<mount>/<group_name>".
  const std::string& path() const { return path_; }

  /// Names of the groups that exist, sorted: those in path(), and those that PlaceFor gave a place elsewhere. Looks through all groups of
  /// the machine for these: milliseconds for hundreds.
  std::vector<std::string> List();

  /// Where the group `name` is to be made, so that a process that is in `above` (ReadUnifiedCgroup) stays below all limits and device
  /// programs that hold for it: "<above>/<group_name>.<name>"; for a process in a group of ours, beside that group; for one in the root, in
  /// path(). kFailedPrecondition with the reason, for people, where there is no such place.
  base::Result<std::string> PlaceFor(const std::string& name, const std::string& above) const;

  /// Makes a group whose processes obey the rules (BPF_PROG_TYPE_CGROUP_DEVICE), with a note that stays with the group as long as it exists
  /// (extended attribute trusted.penstock, at most 60 KiB), at the place that PlaceFor gave. All or nothing, but for a crash in between: a
  /// group without a note is unfinished, and nothing was ever in it. kInvalidArgument for a name that is no file name and for rules beyond
  /// kMostDeviceRanges or upside down; kAlreadyExists.
  base::Status Create(const std::string& name, const std::string& place, const DeviceRules& rules, const std::string& note);

  /// Where it is, as PlaceFor names it.
  std::string Place(const std::string& name) const;

  /// The folder of a group of the machine, ours or not, named as ReadUnifiedCgroup does; kFailedPrecondition where it is not to be seen.
  base::Result<std::string> FolderAt(const std::string& cgroup) const;

  /// The note given at creation.
  base::Result<std::string> Note(const std::string& name) const;

  /// Moves a process (all its threads) into the group. Files that it has open already stay open.
  base::Status Enter(const std::string& name, pid_t pid) const;

  /// Moves a process into a group that is not ours.
  base::Status MoveTo(const std::string& cgroup, pid_t pid) const;

  /// Processes in the group and below.
  std::vector<pid_t> Members(const std::string& name) const;

  /// cgroup.events: "populated 1" while any process lives in the group or below. False also where the group is gone,
  /// true where it cannot be read: the processes that may be in it hold their devices.
  bool Populated(const std::string& name) const;

  /// An open cgroup.events: poll gives EPOLLPRI when `populated` changes, again and again until ReadEvents. Wait for EPOLLPRI alone: the
  /// file counts as readable at any time. Ask ReadEvents once after opening.
  base::Result<UniqueFd> OpenEvents(const std::string& name) const;

  /// Acknowledges the notice of an open cgroup.events and says whether the group is populated, as Populated does.
  static bool ReadEvents(int events);

  /// A signal to those of these processes that are members still: a number may be another process's by now. Needs two descriptors.
  void Signal(const std::string& name, std::span<const pid_t> pids, int signal) const;

  /// SIGKILL to all members (cgroup.kill, or one by one before Linux 5.14).
  base::Status Kill(const std::string& name) const;

  /// Removes an empty group, and empty groups below it; nothing where it is gone. kFailedPrecondition while a process lives in it.
  base::Status Remove(const std::string& name);

  /// Removes path() itself; kFailedPrecondition while there are groups in it.
  base::Status RemoveTree() const;

 private:
  CgroupTree(std::string mount, std::string mount_root, const std::string& group_name);
  std::vector<std::string> ListOwn() const;
  std::string FolderOf(const std::string& name) const;

  std::string mount_, mount_root_;  // the hierarchy's mount point, and the group that is to be seen there
  std::string path_;
  std::string prefix_;                            // of the names of our groups elsewhere
  std::map<std::string, std::string> elsewhere_;  // their folders, by our names
};

}  // namespace penstock::os
