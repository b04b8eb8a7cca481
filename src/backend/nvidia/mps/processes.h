// Finds the running control daemon and servers of a set in the process table. Their environment
// contains what they were started with, so that an agent recognizes them whatever happened to the
// agent before it. Files and names, which a client could write, are not trusted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "backend/nvidia/mps/folders.h"
#include "backend/nvidia/mps/spec.h"
#include "os/process/process.h"

namespace penstock::backend::nvidia::mps {

/// The environment variables that mark the daemon and its servers.
inline constexpr std::string_view kSpecVariable = "PENSTOCK_MPS_SPEC";
inline constexpr std::string_view kFolderVariable = "PENSTOCK_MPS_FOLDER";

/// The control group of the daemon and its servers, at the top of the machine's hierarchy.
inline constexpr std::string_view kGroup = "penstock-mps";

struct DaemonProcess {
  pid_t pid = 0;
  std::uint64_t start = 0;
  std::optional<ServerSpec> spec;  ///< nothing: its environment contains no readable spec
  std::string sockets;             ///< the folder of its listening sockets
  bool own_shm = false;            ///< its /dev/shm is the set's own
};

/// The control daemons that agents started for these folders: processes of this process's user, in
/// the daemons' control group or in this process's, whose executable is named
/// nvidia-cuda-mps-control and belongs to root or to this user, and whose environment contains the
/// folder. Reads every process. `proc` is the process file system ("/proc").
std::vector<DaemonProcess> FindDaemons(const std::string& proc, const Folders& folders);

struct ServerProcess {
  pid_t pid = 0;
  std::uint64_t start = 0;
  std::size_t threads =
      0;  ///< one more for each client (NVIDIA's manual, "Client attach and detach")
};

/// The servers that the set's daemons started, including those of dead daemons. Servers may have
/// any user, since they run as the users of their clients; otherwise they are recognized like
/// daemons. Reads every process.
std::vector<ServerProcess> FindServers(const std::string& proc, const Folders& folders);

/// Whether a process is the daemon that an agent started for any set, or one of its servers.
bool IsServer(const std::string& proc, const os::ProcessInfo& process);

/// The number of threads of a process; 0 if it has ended.
std::size_t CountThreads(const std::string& proc, pid_t pid);

/// Sends a signal to the process that has this start time, never to a later process with the same
/// pid.
void Signal(const std::string& proc, pid_t pid, std::uint64_t start, int signal);

}  // namespace penstock::backend::nvidia::mps
