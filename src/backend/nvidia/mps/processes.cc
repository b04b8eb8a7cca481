#include "backend/nvidia/mps/processes.h"

#include <algorithm>

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"

namespace penstock::backend::nvidia::mps {
namespace {

constexpr std::size_t kMaxEnvironment = 1u << 20;
constexpr std::string_view kDaemon = "nvidia-cuda-mps-control", kServer = "nvidia-cuda-mps-server";

std::string FolderOf(const std::string& proc, pid_t pid) {
  return proc + "/" + std::to_string(pid);
}

/// A variable of a process's environment as it was at the process's start; nothing if it is unset
/// or not readable.
std::optional<std::string> Variable(const std::string& proc, pid_t pid, std::string_view name) {
  const auto text = os::ReadEnvironment(proc, pid, kMaxEnvironment);
  if (!text.ok()) return std::nullopt;
  const std::string prefix = std::string(name) + "=";
  for (const std::string& entry : base::Split(*text, '\0'))
    if (entry.starts_with(prefix)) return entry.substr(prefix.size());
  return std::nullopt;
}

bool IsSame(const std::string& one, const std::string& other) {
  struct stat left {
  }, right{};
  return ::stat(one.c_str(), &left) == 0 && ::stat(other.c_str(), &right) == 0 &&
         left.st_dev == right.st_dev && left.st_ino == right.st_ino;
}

/// Whether the process's executable has that name and belongs to root or to this user. Arguments
/// prove nothing, and neither does a user's own copy: both can have any name.
bool Runs(const std::string& proc, pid_t pid, std::string_view program) {
  const std::string link = FolderOf(proc, pid) + "/exe";
  const std::string path = os::ReadLink(link).value_or("");
  std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  static constexpr std::string_view kReplaced =
      " (deleted)";  // a new version of the driver has replaced the file
  if (name.ends_with(kReplaced)) name.remove_suffix(kReplaced.size());
  struct stat file {};
  return name == program && ::stat(link.c_str(), &file) == 0 &&
         (file.st_uid == 0 || file.st_uid == ::geteuid());
}

/// Whether each of the process's control groups is the daemons' group, the top of a hierarchy
/// (where a daemon is in hierarchies without that group), or a group of this process. A container's
/// process cannot move itself there. In a cgroup namespace the top is above this process's root:
/// "/../..".
bool IsInGroup(const os::ProcessInfo& process) {
  if (::geteuid() != 0 && process.uid == ::geteuid())
    return true;  // a user's own processes have this process's rights
  const auto own = os::ReadProcess("/proc", ::getpid());
  if (process.cgroups.empty())
    return own.ok() && own->cgroups.empty();  // unreadable groups prove nothing
  return std::ranges::all_of(process.cgroups, [&](const std::string& path) {
    std::string_view top = path;
    while (top.starts_with("/..")) top.remove_prefix(3);
    if (top.empty() || top == "/" || (top.starts_with('/') && top.substr(1) == kGroup)) return true;
    return own.ok() && std::ranges::find(own->cgroups, path) != own->cgroups.end();
  });
}

/// The processes of this program that agents started for the folders.
std::vector<os::ProcessInfo> Find(const std::string& proc, const Folders& folders,
                                  std::string_view program) {
  std::vector<os::ProcessInfo> found;
  for (const pid_t pid : os::ListProcesses(proc)) {
    if (!Runs(proc, pid, program)) continue;
    auto process = os::ReadProcess(proc, pid);
    if (!process.ok() || !IsInGroup(*process) ||
        Variable(proc, pid, kFolderVariable) != folders.all)
      continue;
    found.push_back(*std::move(process));
  }
  return found;
}

}  // namespace

std::vector<DaemonProcess> FindDaemons(const std::string& proc, const Folders& folders) {
  const std::vector<os::ProcessInfo> found = Find(proc, folders, kDaemon);
  std::vector<DaemonProcess> daemons;
  for (const os::ProcessInfo& process : found) {
    // A daemon's child with the daemon's executable is about to become a server.
    const auto is_parent = [&](const os::ProcessInfo& other) {
      return other.pid == process.parent;
    };
    if (process.uid != ::geteuid() || std::ranges::any_of(found, is_parent)) continue;
    DaemonProcess daemon;
    daemon.pid = process.pid;
    daemon.start = process.start;
    if (const auto spec = Variable(proc, process.pid, kSpecVariable)) daemon.spec = ReadSpec(*spec);
    // Daemons started by version 0.1.0 listen where their clients can write.
    const bool among_clients =
        Variable(proc, process.pid, "CUDA_MPS_PIPE_DIRECTORY").value_or("").ends_with("/pipe");
    daemon.sockets = among_clients ? folders.pipe : folders.daemon;
    daemon.own_shm = IsSame(FolderOf(proc, process.pid) + "/root/dev/shm", folders.shm);
    daemons.push_back(std::move(daemon));
  }
  return daemons;
}

std::size_t CountThreads(const std::string& proc, pid_t pid) {
  const auto tasks = os::ListDirectory(FolderOf(proc, pid) + "/task");
  return tasks.ok() ? tasks->size() : 0;
}

bool IsServer(const std::string& proc, const os::ProcessInfo& process) {
  return (Runs(proc, process.pid, kServer) || Runs(proc, process.pid, kDaemon)) &&
         IsInGroup(process) && Variable(proc, process.pid, kFolderVariable).has_value();
}

std::vector<ServerProcess> FindServers(const std::string& proc, const Folders& folders) {
  std::vector<ServerProcess> servers;
  for (const os::ProcessInfo& process : Find(proc, folders, kServer))
    servers.push_back({process.pid, process.start, CountThreads(proc, process.pid)});
  return servers;
}

void Signal(const std::string& proc, pid_t pid, std::uint64_t start, int signal) {
  const auto fd = os::OpenPidfd(pid);
  const auto now = os::ReadProcessStart(proc, pid);
  if (fd.ok() && now.ok() && *now == start)
    (void)::syscall(SYS_pidfd_send_signal, fd->get(), signal, nullptr, 0);
}

}  // namespace penstock::backend::nvidia::mps
