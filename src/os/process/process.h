// Reads processes from /proc, and starts children with posix_spawn.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "base/core/result.h"
#include "os/core/fd.h"

namespace penstock::os {

/// A process at one moment. `start` (clock ticks since boot, proc(5) field 22) distinguishes a
/// process from a later one with the same pid.
struct ProcessInfo {
  pid_t pid = 0;
  pid_t parent = 0;
  std::uint64_t start = 0;
  uid_t uid = 0;
  std::string command;  ///< argv joined by blanks, or [comm] if it cannot be read; printable UTF-8,
                        ///< at most 4 KiB
  std::string cgroup;   ///< path in the unified hierarchy, or in the first v1 hierarchy if there is
                        ///< none: "/user.slice/..."
  std::vector<std::string> cgroups;  ///< the distinct paths in all hierarchies
};

/// kNotFound if the process has ended. `proc` is the root of the proc file system, "/proc". Blocks
/// for at most half a second if the process delays readers of its command line
/// (os/process/process_memory.h).
base::Result<ProcessInfo> ReadProcess(const std::string& proc, pid_t pid);

/// The first `most` bytes of the environment, as "NAME=value" entries, each terminated by NUL.
/// Blocks as ReadProcess does, and then returns kDeadlineExceeded or kUnavailable.
base::Result<std::string> ReadEnvironment(const std::string& proc, pid_t pid, std::size_t most);

/// Reads the start time only, which is cheap.
base::Result<std::uint64_t> ReadProcessStart(const std::string& proc, pid_t pid);

/// In ascending order; empty if `proc` cannot be listed.
std::vector<pid_t> ListProcesses(const std::string& proc);

/// Whether a process of this group runs: one that has ended and waits for its parent does not.
bool GroupRuns(const std::string& proc, pid_t group);

/// Whether a process belongs to the machine itself (on a node that is a container: to that node)
/// and not to a container on it: it shares the user and pid namespaces of the first process in
/// `proc`, and the mount namespace of that process or of this one. False if the namespaces cannot
/// be read, which requires permission to trace both processes (namespaces(7)).
bool IsOfTheMachine(const std::string& proc, pid_t pid);

/// Name of a user, or the uid as text.
std::string UserName(uid_t uid);

/// The machine's boot id, which changes with every boot.
base::Result<std::string> ReadBootId(const std::string& proc);

/// User and system time used by a process, in nanoseconds.
base::Result<std::uint64_t> ReadCpuTime(const std::string& proc, pid_t pid);

/// A child process. The destructor leaves it running.
struct Child {
  pid_t pid = 0;
  UniqueFd pidfd;  ///< readable when the child has ended
};

struct SpawnOptions {
  std::vector<std::string>
      arguments;  ///< argv; [0] is the program: a path, or a name to find in PATH
  std::vector<std::string> environment;  ///< the whole environment, "NAME=value"; empty: inherit
  std::vector<std::pair<int, int>>
      descriptors;  ///< {parent's number, child's number}; all others are closed on exec
  bool new_session = false;
  std::string folder = {};   ///< its working directory; empty: this process's
  int standard_output = -1;  ///< descriptor for 1 and 2; -1: inherit
};

/// Uses posix_spawn, since fork in a process with gRPC threads could deadlock. The child starts
/// with default signal handling and no blocked signals. The caller reaps it (waitid(P_PIDFD) or
/// waitpid). kNotFound if there is no such program; kUnimplemented before Linux 5.3 (no pidfd).
base::Result<Child> Spawn(const SpawnOptions& options);

/// Opens a pidfd of any process.
base::Result<UniqueFd> OpenPidfd(pid_t pid);

/// The path of the running program, with links resolved.
std::string OwnPath();

/// The folder of the running program, which also contains its companion programs.
std::string OwnFolder();

}  // namespace penstock::os
