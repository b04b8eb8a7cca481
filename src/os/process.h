// Processes as /proc shows them, and children of our own by posix_spawn. Nothing here knows of accelerators.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/core/result.h"
#include "os/core/fd.h"

namespace penstock::os {

/// A process at one moment. `start` (clock ticks since boot, proc(5) field 22) tells a process from a later one with the same pid.
struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  std::uint64_t start = 0;
  uid_t uid = 0;
  std::string command;               ///< argv joined by blanks, or [comm] where it cannot be read; printable UTF-8, at most 4 KiB
  std::string cgroup;                ///< path in the unified hierarchy, or of the first v1 hierarchy where there is none: "/user.slice/..."
  std::vector<std::string> cgroups;  ///< the different paths in all hierarchies
};

/// kNotFound when the process is gone. `proc` is the proc file system's root, "/proc". Waits for half a second at most where the process
/// keeps readers of its command line waiting (os/process_memory.h).
base::Result<ProcessInfo> ReadProcess(const std::string& proc, pid_t pid);

/// Its environment, the first `most` bytes, as "NAME=value" each ended by a NUL. Waits as ReadProcess does, and is kDeadlineExceeded or
/// kUnavailable then.
base::Result<std::string> ReadEnvironment(const std::string& proc, pid_t pid, std::size_t most);

/// Start time only: cheap.
base::Result<std::uint64_t> ReadProcessStart(const std::string& proc, pid_t pid);

/// In ascending order; empty where `proc` cannot be listed.
std::vector<pid_t> ListProcesses(const std::string& proc);

/// Whether a process is in the user and pid namespaces of the first process that `proc` shows, and in the mount namespace of that one or in
/// ours: one of the machine itself (of a node that is a container, of that node), not of a container on it. False where these cannot be
/// read: that needs the right to trace both (namespaces(7)).
bool IsOfTheMachine(const std::string& proc, pid_t pid);

/// Name of a user, or its number as text.
std::string UserName(uid_t uid);

/// The machine's boot id, which changes with every boot.
base::Result<std::string> ReadBootId(const std::string& proc);

/// PSS of a process in bytes (smaps_rollup; ours only, or as root).
base::Result<std::uint64_t> ReadPss(const std::string& proc, pid_t pid);

/// User and system time that a process has used, in nanoseconds.
base::Result<std::uint64_t> ReadCpuTime(const std::string& proc, pid_t pid);

/// A child of ours. The destructor leaves it running.
struct Child {
  pid_t pid = 0;
  UniqueFd pidfd;  ///< readable when it has ended
};

struct SpawnOptions {
  std::vector<std::string> arguments;            ///< argv; [0] is the program: a path, or a name found through PATH
  std::vector<std::string> environment;          ///< whole environment, "NAME=value"; empty means ours
  std::vector<std::pair<int, int>> descriptors;  ///< {ours, the child's number}; all others are closed on exec
  bool new_session = false;
  int standard_output = -1;  ///< descriptor for 1 and 2, or inherited
};

/// posix_spawn: a fork of a process with gRPC threads could deadlock. The child starts with default signal handling and no signal blocked.
/// The caller reaps it (waitid(P_PIDFD) or waitpid). kNotFound where there is no such program; kUnimplemented before Linux 5.3 (no pidfd).
base::Result<Child> Spawn(const SpawnOptions& options);

/// A pidfd of any process.
base::Result<UniqueFd> OpenPidfd(pid_t pid);

/// The path of the running program itself, links resolved.
std::string OwnPath();

/// The folder that it lies in, where its kin are.
std::string OwnFolder();

}  // namespace penstock::os
