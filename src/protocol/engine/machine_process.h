// Decides which processes and sockets of the machine are trusted to be the kubelet's and the
// container engines'. Only this file identifies a process by what it reports about itself (its
// program, its arguments): any process can take any name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/core/result.h"

namespace penstock::protocol::engine {

/// A process that only root (or our own user) can have started with this program.
struct MachineProcess {
  pid_t pid = 0;
  std::string name;  ///< its program's; for a program with several functions (k3s), the name in its
                     ///< arguments
  std::string program;  ///< path of its executable as it sees it; may have been removed meanwhile
  std::vector<std::string> arguments;  ///< with its name first
  std::vector<std::string> cgroups;    ///< in all hierarchies
  bool sees_our_files =
      false;  ///< it is in our mount namespace; else in that of the machine's first process
};

/// Trusts a process by one rule: it belongs to the machine by its namespaces (os::IsOfTheMachine),
/// all its user ids are root's or ours, its executable and every folder above are root's or ours
/// and closed to others (os::OpenTrusted), and it is in no pod's control group that the machine's
/// first process is not in. Else kPermissionDenied with the reason. Blocks. Any thread.
base::Result<MachineProcess> Identify(const std::string& proc_root, pid_t pid);

/// The processes of the machine whose executable has one of these names and that satisfy Identify's
/// rule, by pid. `refused` says why the first of the machine's own processes does not satisfy it;
/// empty if all do.
struct Named {
  std::vector<MachineProcess> processes;
  std::string refused;
};
Named ProcessesNamed(const std::string& proc_root, const std::vector<std::string_view>& names);

/// Returns the pid of the socket's listener by SO_PEERCRED, 0 in another pid namespace. `socket` is
/// a path as we see it, or one below PROC/1/root. Only root (or our own user) may be able to create
/// it (os::OpenTrusted) and may listen at it, else kPermissionDenied; kNotFound if it does not
/// exist or no process listens. Never waits. Any thread.
base::Result<pid_t> ListenerOf(const std::string& proc_root, const std::string& socket);

/// Returns where the machine's files are, as its first process sees them: "" if we see the same,
/// "PROC/1/root" if we are in a container.
std::string MachineFiles(const std::string& proc_root);

/// Prefix of commands that must see what the machine's first process sees; empty: this process
/// does.
std::vector<std::string> EnterMachine(const std::string& proc_root);

/// "PROC/1/root/run/x.sock" → "/run/x.sock": the path for the machine's own programs. Other paths
/// stay.
std::string WithoutMachineFiles(const std::string& proc_root, const std::string& path);

}  // namespace penstock::protocol::engine
