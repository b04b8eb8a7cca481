// Which control daemon and servers of a set run now, by the process table: they carry in their environment what they were started with, so
// that an agent knows them whatever became of the one before it. Nothing that a client of theirs can write counts: no file, no name.
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

/// The control group that they are put into, at the top of the machine's.
inline constexpr std::string_view kGroup = "penstock-mps";

struct DaemonProcess {
  pid_t pid = 0;
  std::uint64_t start = 0;
  std::optional<Spec> spec;  ///< nothing: its environment has none that can be read
  std::string sockets;       ///< the folder in which it listens
  bool own_shm = false;      ///< what it has as /dev/shm is the set's own
};

/// The control daemons that agents started for these folders: processes of our user, in the control group of such daemons or in ours, whose
/// executable is root's or ours and is called nvidia-cuda-mps-control, and that have the folder in their environment. Looks at every
/// process. `proc` is where processes are ("/proc").
std::vector<DaemonProcess> FindDaemons(const std::string& proc, const Folders& folders);

struct ServerProcess {
  pid_t pid = 0;
  std::uint64_t start = 0;
  std::size_t threads = 0;  ///< one more for each client (NVIDIA's manual, "Client attach and detach")
};

/// The servers that the set's daemons started, dead daemons' too: of any user, since they run as the users of their clients, but found like
/// daemons otherwise. Looks at every process.
std::vector<ServerProcess> FindServers(const std::string& proc, const Folders& folders);

/// Whether a process is a server that a daemon of ours started, for whatever set.
bool IsServer(const std::string& proc, const os::ProcessInfo& process);

/// Threads of a process; 0 where it is gone.
std::size_t CountThreads(const std::string& proc, pid_t pid);

/// Sends a signal to the process that started then, never to a later one of the same number.
void Signal(const std::string& proc, pid_t pid, std::uint64_t start, int signal);

}  // namespace penstock::vendor::nvidia::mps
