#include "vendor/nvidia/mps/processes.h"

#include <sys/stat.h>

#include "base/core/strings.h"
#include "os/core/file.h"
#include "os/process.h"

namespace penstock::vendor::nvidia::mps {
namespace {

constexpr std::size_t kMostEnvironment = 1u << 20;

/// A variable of a process's environment as it was at its start; nothing where it has none, or we may not look.
std::optional<std::string> Variable(const std::string& proc, pid_t pid, std::string_view name) {
  const auto text = os::ReadFile(proc + "/" + std::to_string(pid) + "/environ", kMostEnvironment);
  if (!text.ok()) return std::nullopt;
  const std::string prefix = std::string(name) + "=";
  for (const std::string& entry : base::Split(*text, '\0'))
    if (entry.starts_with(prefix)) return entry.substr(prefix.size());
  return std::nullopt;
}

bool IsSame(const std::string& one, const std::string& other) {
  struct stat left {
  }, right{};
  return ::stat(one.c_str(), &left) == 0 && ::stat(other.c_str(), &right) == 0 && left.st_dev == right.st_dev &&
         left.st_ino == right.st_ino;
}

bool Runs(const os::ProcessInfo& process, std::string_view program) { return process.command.find(program) != std::string::npos; }

}  // namespace

std::optional<DaemonProcess> FindDaemon(const std::string& proc, const Folders& folders) {
  const auto text = os::ReadFile(folders.pipe + "/nvidia-cuda-mps-control.pid", 64);
  const auto pid = text.ok() ? base::ParseInt(base::Trim(*text)) : std::nullopt;
  if (!pid || *pid <= 1 || *pid > 1 << 30) return std::nullopt;
  const auto process = os::ReadProcess(proc, static_cast<pid_t>(*pid));
  if (!process.ok() || !Runs(*process, "mps-control")) return std::nullopt;
  DaemonProcess daemon;
  daemon.pid = process->pid;
  if (const auto spec = Variable(proc, daemon.pid, kSpecVariable)) daemon.spec = ReadSpec(*spec);
  daemon.own_shm = IsSame(proc + "/" + std::to_string(daemon.pid) + "/root/dev/shm", folders.shm);
  return daemon;
}

std::vector<pid_t> FindStrays(const std::string& proc, const Folders& folders) {
  std::vector<pid_t> strays;
  for (const pid_t pid : os::ListProcesses(proc)) {
    const auto process = os::ReadProcess(proc, pid);
    if (process.ok() && Runs(*process, "mps-control") && Variable(proc, pid, kFolderVariable) == folders.all) strays.push_back(pid);
  }
  return strays;
}

std::size_t CountThreads(const std::string& proc, pid_t pid) {
  const auto tasks = os::ListDirectory(proc + "/" + std::to_string(pid) + "/task");
  return tasks.ok() ? tasks->size() : 0;
}

bool IsServer(const std::string& proc, const os::ProcessInfo& process) {
  return Runs(process, "mps-server") && Variable(proc, process.pid, kFolderVariable).has_value();
}

std::vector<ServerProcess> FindServers(const std::string& proc, const Folders& folders, pid_t daemon) {
  std::vector<ServerProcess> servers;
  for (const pid_t pid : os::ListProcesses(proc)) {
    const auto process = os::ReadProcess(proc, pid);
    if (!process.ok() || !Runs(*process, "mps-server")) continue;
    if ((daemon == 0 || process->parent != daemon) && Variable(proc, pid, kFolderVariable) != folders.all) continue;
    servers.push_back({pid, process->start, CountThreads(proc, pid)});
  }
  return servers;
}

}  // namespace penstock::vendor::nvidia::mps
