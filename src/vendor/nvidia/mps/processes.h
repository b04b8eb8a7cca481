// Which control daemon and servers of a set run now, by the process table: they carry in their environment what they were started with, so
// that an agent knows them whatever became of the one before it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "os/process.h"
#include "vendor/nvidia/mps/folders.h"
#include "vendor/nvidia/mps/spec.h"

namespace penstock::vendor::nvidia::mps {

/// The variables that mark them.
inline constexpr std::string_view kSpecVariable = "PENSTOCK_MPS_SPEC";
inline constexpr std::string_view kFolderVariable = "PENSTOCK_MPS_FOLDER";

struct DaemonProcess {
  pid_t pid = 0;
  std::optional<Spec> spec;  ///< nothing: somebody else started it
  bool own_shm = false;      ///< what it has as /dev/shm is the set's own
};

/// The daemon that the pipe's pid file names, where it lives and is one. `proc` is where processes are ("/proc").
std::optional<DaemonProcess> FindDaemon(const std::string& proc, const Folders& folders);

/// Control daemons of ours for these folders, found by what they carry: also one whose pid file was taken away, so that nobody can ask it.
/// Looks at every process.
std::vector<pid_t> FindStrays(const std::string& proc, const Folders& folders);

struct ServerProcess {
  pid_t pid = 0;
  std::uint64_t start = 0;
  std::size_t threads = 0;  ///< one more for each client (NVIDIA's manual, "Client attach and detach")
};

/// The servers that the set's daemons started, dead daemons' too, and the children of this daemon (0: none), whoever started it. Looks at
/// every process.
std::vector<ServerProcess> FindServers(const std::string& proc, const Folders& folders, pid_t daemon);

/// Whether a process is a server that a daemon of ours started, for whatever set.
bool IsServer(const std::string& proc, const os::ProcessInfo& process);

/// Threads of a process; 0 where it is gone.
std::size_t CountThreads(const std::string& proc, pid_t pid);

}  // namespace penstock::vendor::nvidia::mps
