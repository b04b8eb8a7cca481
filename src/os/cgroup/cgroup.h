// Creates and manages the agent's own control groups in the unified hierarchy (cgroup v2, alone or
// beside v1): membership, device rules by BPF, and notification when a group becomes empty.
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

/// A range of character devices of one major number, by minor number (first to last, inclusive).
struct DeviceRange {
  std::uint32_t major = 0;
  std::uint32_t first_minor = 0;
  std::uint32_t last_minor = 0;
  bool operator==(const DeviceRange&) const = default;
};

/// The limit on guarded and admitted ranges together: any kernel since 4.15 accepts a program of
/// this size.
inline constexpr std::size_t kMaxDeviceRanges = 800;

/// Which devices a group may open: all but the `guarded` ones; of the guarded ones only those in
/// `admitted`, for reading or writing. Creating a device file (mknod) is not opening the device,
/// and stays allowed.
struct DeviceRules {
  std::vector<DeviceRange> guarded;
  std::vector<DeviceRange> admitted;
};

/// The group of a process in the unified hierarchy, as this process's control group namespace names
/// it: "/user.slice/user-1000.slice/session-3.scope". kNotFound if the process has ended or the
/// machine has no unified hierarchy. `proc` is the root of the proc file system.
base::Result<std::string> ReadUnifiedCgroup(const std::string& proc, pid_t pid);

/// The unified hierarchy of this machine, as far as this process may use it. Use from one thread;
/// calls block for microseconds.
class CgroupTree {
 public:
  /// Finds the cgroup2 mount (/sys/fs/cgroup, or /sys/fs/cgroup/unified on hybrid machines). Checks
  /// once that this process may create groups there and attach device programs, by creating a probe
  /// group and removing it. Errors name the missing permission.
  static base::Result<CgroupTree> Open(const std::string& group_name);

  /// The directory of the agent's groups for processes that are in no group but the root:
  /// "<mount>/<group_name>".
  const std::string& path() const { return path_; }

  /// Names of the existing groups, sorted: those in path(), and those that PlaceFor placed
  /// elsewhere. To find the latter it searches all groups of the machine: milliseconds for hundreds
  /// of groups.
  std::vector<std::string> List();

  /// Where to create the group `name` for a process that is in group `above` (as ReadUnifiedCgroup
  /// returns it), so that all limits and device programs of `above` still apply:
  /// "<above>/<group_name>.<name>". For a process in one of the agent's groups: beside that group.
  /// For a process in the root group: in path(). kFailedPrecondition, with a reason for users, if
  /// there is no such place.
  base::Result<std::string> PlaceFor(const std::string& name, const std::string& above) const;

  /// Creates a group at `place` (from PlaceFor) whose processes obey the rules
  /// (BPF_PROG_TYPE_CGROUP_DEVICE). The note is stored with the group for as long as the group
  /// exists (extended attribute trusted.penstock, at most 60 KiB). All or nothing, except after a
  /// crash during creation: a group without a note is unfinished and never held a process.
  /// kInvalidArgument if the name is not a valid file name, or the rules exceed kMaxDeviceRanges
  /// or contain a reversed range; kAlreadyExists.
  base::Status Create(const std::string& name, const std::string& place, const DeviceRules& rules,
                      const std::string& note);

  /// The group's place, in the form that PlaceFor returns.
  std::string Place(const std::string& name) const;

  /// The folder of any group of the machine, named as ReadUnifiedCgroup names it;
  /// kFailedPrecondition if this process's mount does not show the group.
  base::Result<std::string> FolderAt(const std::string& cgroup) const;

  /// The note that was stored by Create.
  base::Result<std::string> Note(const std::string& name) const;

  /// Moves a process (all its threads) into the group. Files that the process already has open stay
  /// open.
  base::Status Enter(const std::string& name, pid_t pid) const;

  /// Moves a process into a group that is not one of the agent's.
  base::Status MoveTo(const std::string& cgroup, pid_t pid) const;

  /// Processes in the group and its descendants.
  std::vector<pid_t> Members(const std::string& name) const;

  /// Whether any process lives in the group or its descendants (cgroup.events: "populated 1").
  /// False also if the group no longer exists. True if the file cannot be read, since processes
  /// that may be in the group hold their devices.
  bool Populated(const std::string& name) const;

  /// Opens cgroup.events. poll reports EPOLLPRI when `populated` changes, repeatedly until
  /// ReadEvents. Wait for EPOLLPRI only, since the file always counts as readable. Call ReadEvents
  /// once after opening.
  base::Result<UniqueFd> OpenEvents(const std::string& name) const;

  /// Acknowledges the event of an open cgroup.events and returns whether the group is populated, as
  /// Populated does.
  static bool ReadEvents(int events);

  /// Sends a signal to those of these processes that are still members: the kernel may have reused
  /// a pid for another process. Needs two descriptors.
  void Signal(const std::string& name, std::span<const pid_t> pids, int signal) const;

  /// Sends SIGKILL to all members (cgroup.kill, or one by one before Linux 5.14).
  base::Status Kill(const std::string& name) const;

  /// Removes an empty group and its empty descendants; does nothing if the group does not exist.
  /// kFailedPrecondition while a process lives in it.
  base::Status Remove(const std::string& name);

  /// Removes path() itself; kFailedPrecondition while it contains groups.
  base::Status RemoveTree() const;

 private:
  CgroupTree(std::string mount, std::string mount_root, const std::string& group_name);
  std::vector<std::string> ListOwn() const;
  std::string FolderOf(const std::string& name) const;

  std::string mount_,
      mount_root_;  // the hierarchy's mount point, and the group that the mount shows
  std::string path_;
  std::string prefix_;                            // of the names of the agent's groups elsewhere
  std::map<std::string, std::string> elsewhere_;  // their folders, by the agent's names
};

}  // namespace penstock::os
