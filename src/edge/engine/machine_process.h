// Which processes and sockets of the machine are believed to be the kubelet's and the container engines'. The only place where what a
// process says of itself (its program, its arguments) makes it somebody: any process can take any name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/core/result.h"

namespace penstock::edge::engine {

/// A process that nobody but root (or the user that we are) can have started with this program.
struct MachineProcess {
  pid_t pid = 0;
  std::string name;                    ///< its program's; where one program is many (k3s), what it was called as
  std::string program;                 ///< path of its executable as it sees it; may have been removed meanwhile
  std::vector<std::string> arguments;  ///< with its name
  std::vector<std::string> cgroups;    ///< in all hierarchies
  bool sees_our_files = false;         ///< it is in our mount namespace; else in that of the machine's first process
};

/// One rule for all: the process is of the machine by its namespaces (os::IsOfTheMachine), all its user ids are root's or ours, its
/// executable and every folder above are root's or ours and closed to others (os::OpenTrusted), and it is in no pod's control group that
/// the machine's first process is not in. Else kPermissionDenied with the reason. Blocks. Any thread.
base::Result<MachineProcess> Identify(const std::string& proc_root, pid_t pid);

/// The processes of the machine whose executable has one of these names and that satisfy Identify's rule, by pid; `refused` says why the
/// first of the machine's own does not, and is empty where all do.
struct Named {
  std::vector<MachineProcess> processes;
  std::string refused;
};
Named ProcessesNamed(const std::string& proc_root, const std::vector<std::string_view>& names);

/// Who listens at the socket: the peer's pid by SO_PEERCRED, 0 in another pid namespace. `socket` is a path as we see it, or one below
/// PROC/1/root. Nobody but root (or we) can have put it there (os::OpenTrusted) or listen at it, else kPermissionDenied; kNotFound where it
/// is not there or nobody listens. Never waits. Any thread.
base::Result<pid_t> ListenerOf(const std::string& proc_root, const std::string& socket);

/// Where the files of the machine are, as its first process sees them: "" where we see the same, "PROC/1/root" where we are in a container.
std::string MachineFiles(const std::string& proc_root);

/// "PROC/1/root/run/x.sock" → "/run/x.sock": how the machine's own programs call it. Other paths stay.
std::string WithoutMachineFiles(const std::string& proc_root, const std::string& path);

}  // namespace penstock::edge::engine
