// Judges processes by what only root can arrange: namespaces, user ids, owners of files, control
// groups.
#include "protocol/engine/machine_process.h"

#include <algorithm>

#include <sys/stat.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"
#include "os/process/launch.h"
#include "os/process/process.h"
#include "os/process/process_text.h"
#include "os/trusted_path.h"
#include "protocol/rpc/peer.h"

namespace penstock::protocol::engine {
namespace {

constexpr std::size_t kMaxText = 1u << 20;
constexpr std::string_view kDeleted = " (deleted)";  // proc(5), of an executable that was replaced
/// Programs whose name in the arguments selects their function: k3s is also its containerd
/// (cmd/server/main.go).
constexpr std::string_view kMany = "k3s";

std::string Folder(const std::string& proc_root, const std::string& below) {
  return proc_root + "/" + below;
}
std::string MountNamespace(const std::string& process) {
  return os::ReadLink(process + "/ns/mnt").value_or("");
}

/// Returns the executable's path, also of an untrusted process; empty if it has none or it cannot
/// be seen.
std::string ProgramOf(const std::string& process) {
  std::string program = os::ReadLink(process + "/exe").value_or("");
  if (program.ends_with(kDeleted)) program.resize(program.size() - kDeleted.size());
  return program;
}

/// Checks the real, effective, saved and file system user ids: a set-user-id program of root's has
/// its caller's as the real one.
base::Status CheckUsers(const std::string& process) {
  ASSIGN(const std::string status, os::ReadFile(process + "/status", kMaxText));
  for (const std::string& line : base::Split(status, '\n')) {
    if (!line.starts_with("Uid:")) continue;
    for (const std::string& word : base::Split(line.substr(4), '\t'))
      if (!word.empty() && word != "0" && word != std::to_string(::geteuid()))
        return Error(Code::kPermissionDenied, "it runs as user " + word);
    return {};
  }
  return Error(Code::kPermissionDenied, "its users cannot be determined");
}

/// Checks the executable by its inode, and also the file now at its path, which is what would be
/// executed: in a folder with the sticky bit, root can remove root's file and another user can
/// create it again. After an upgrade the path may be empty; then its folders are checked.
base::Status CheckProgram(const std::string& files, const std::string& process,
                          const std::string& program) {
  struct stat status {};
  if (!program.starts_with('/') || ::stat((process + "/exe").c_str(), &status) != 0)
    return Error(Code::kPermissionDenied, "its program cannot be determined");
  TRY(os::CheckOwner(status, program));
  auto there = os::OpenTrusted(files, program);
  if (!there.ok() && there.error().code() == Code::kNotFound)
    there = os::OpenTrusted(files, program.substr(0, program.find_last_of('/') + 1));
  return there.ok() ? base::Status() : there.error();
}

/// Counts the kubelet's folders on the way to a group: "kubepods", "kubepods-burstable.slice",
/// "pod1234...", "kubepods-pod1234.slice".
std::ptrdiff_t PodFolders(const std::vector<std::string>& cgroups) {
  std::ptrdiff_t most = 0;
  for (const std::string& cgroup : cgroups) {
    const auto names = base::Split(cgroup, '/');
    most = std::max(most, std::ranges::count_if(names, [](const std::string& name) {
                      constexpr std::size_t kPodWithUid = 3 + 32;
                      return name.starts_with("kubepods") ||
                             (name.starts_with("pod") && name.size() >= kPodWithUid);
                    }));
  }
  return most;
}

std::vector<std::string> CgroupsOf(const std::string& process) {
  const auto text = os::ReadFile(process + "/cgroup", kMaxText);
  return text.ok() ? os::ParseCgroups(*text) : std::vector<std::string>();
}

/// Splits a path into a root and a path below it, as OpenTrusted takes them.
std::pair<std::string, std::string> Split(const std::string& proc_root, const std::string& path) {
  const std::string root = Folder(proc_root, "1/root");
  if (path.starts_with(root + "/")) return {root, path.substr(root.size())};
  return {"/", path};
}

}  // namespace

base::Result<MachineProcess> Identify(const std::string& proc_root, pid_t pid) {
  const std::string process = Folder(proc_root, std::to_string(pid));
  MachineProcess found{.pid = pid, .program = ProgramOf(process)};
  const auto refuse = [&](const std::string& why) {
    return Error(Code::kPermissionDenied,
                 "process " + std::to_string(pid) + " (" +
                     (found.program.empty() ? "?" : found.program) +
                     ") is not accepted as a process of the machine itself: " + why);
  };
  if (!os::IsOfTheMachine(proc_root, pid))
    return refuse("it is in separate namespaces, or they cannot be read");
  if (const auto users = CheckUsers(process); !users.ok()) return refuse(users.error().message());
  found.sees_our_files = MountNamespace(process) == MountNamespace(Folder(proc_root, "self"));
  const std::string files = found.sees_our_files ? "/" : Folder(proc_root, "1/root");
  if (const auto program = CheckProgram(files, process, found.program); !program.ok())
    return refuse(program.error().message());
  found.cgroups = CgroupsOf(process);
  if (PodFolders(found.cgroups) > PodFolders(CgroupsOf(Folder(proc_root, "1"))))
    return refuse("it is in a pod");
  if (const auto line = os::ReadFile(process + "/cmdline", kMaxText); line.ok())
    found.arguments = base::Split(*line, '\0');
  found.name = base::LeafOf(found.program);
  if (found.name == kMany && !found.arguments.empty())
    found.name = base::LeafOf(found.arguments.front());
  return found;
}

Named ProcessesNamed(const std::string& proc_root, const std::vector<std::string_view>& names) {
  Named named;
  for (const pid_t pid : os::ListProcesses(proc_root)) {
    const std::string name = base::LeafOf(ProgramOf(Folder(proc_root, std::to_string(pid))));
    if (std::ranges::find(names, name) == names.end() || !os::IsOfTheMachine(proc_root, pid))
      continue;
    auto process = Identify(proc_root, pid);
    if (process.ok()) {
      named.processes.push_back(*std::move(process));
    } else if (named.refused.empty()) {
      named.refused = process.error().message();
    }
  }
  return named;
}

base::Result<pid_t> ListenerOf(const std::string& proc_root, const std::string& socket) {
  const auto [root, path] = Split(proc_root, socket);
  const auto refuse = [&](const std::string& why) {
    return Error(Code::kPermissionDenied, "the socket " + socket + " is not trusted: " + why);
  };
  const auto file = os::OpenTrusted(root, path);
  if (!file.ok() && file.error().code() == Code::kPermissionDenied)
    return refuse(file.error().message());
  if (!file.ok() && file.error().code() == Code::kNotFound)
    return Error(Code::kNotFound, "no process listens at " + socket + ": it does not exist");
  if (!file.ok()) return file.error();
  if (!S_ISSOCK(file->status.st_mode))
    return Error(Code::kInvalidArgument, socket + " is not a socket");
  const rpc::PeerIdentity peer = rpc::PeerOf(socket);
  if (!peer.alive) return Error(Code::kNotFound, "no process listens at " + socket);
  if (peer.uid != static_cast<uid_t>(-1) && peer.uid != 0 && peer.uid != ::geteuid())
    return refuse("user " + std::to_string(peer.uid) + " listens there");
  return peer.pid;
}

std::string MachineFiles(const std::string& proc_root) {
  const std::string own = MountNamespace(Folder(proc_root, "self"));
  return !own.empty() && own == MountNamespace(Folder(proc_root, "1"))
             ? ""
             : Folder(proc_root, "1/root");
}

std::vector<std::string> EnterMachine(const std::string& proc_root) {
  if (MachineFiles(proc_root).empty()) return {};
  return os::LaunchArguments(os::OwnFolder() + "/penstock-worker", {.within = proc_root + "/1"});
}

std::string WithoutMachineFiles(const std::string& proc_root, const std::string& path) {
  return Split(proc_root, path).second;
}

}  // namespace penstock::protocol::engine
