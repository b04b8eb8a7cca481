// Reads /proc: each process through one open directory, so that a reused pid cannot mix two
// processes.
#include "os/process/process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"
#include "os/process/process_memory.h"
#include "os/process/process_text.h"

namespace penstock::os {
namespace {

constexpr std::size_t kMaxCommandBytes = 4096;

base::Result<UniqueFd> OpenProcess(const std::string& proc, pid_t pid) {
  const std::string path = proc + "/" + std::to_string(pid);
  UniqueFd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return ErrnoError(errno, "open " + path);
  return fd;
}

base::Result<std::string> ReadIn(const UniqueFd& process, const char* name) {
  const UniqueFd fd(::openat(process.get(), name, O_RDONLY | O_CLOEXEC));
  if (!fd) return ErrnoError(errno, std::string("open ") + name + " of a process");
  return ReadAll(fd.get(), name, 1u << 20);
}

base::Result<StatFields> ReadStat(const UniqueFd& process) {
  ASSIGN(const std::string text, ReadIn(process, "stat"));
  auto fields = ParseStat(text);
  if (!fields)
    return Error(Code::kDataLoss, "the stat file of a process does not have the format of proc(5)");
  return *std::move(fields);
}

// The real user, as ps shows it; the directory's owner is root if the process is not dumpable.
uid_t ReadUser(const UniqueFd& process) {
  if (const auto status = ReadIn(process, "status"); status.ok()) {
    const auto uid = FindNumber(*status, "Uid");
    if (uid && *uid <= std::numeric_limits<uid_t>::max()) return static_cast<uid_t>(*uid);
  }
  struct stat directory {};
  return ::fstat(process.get(), &directory) == 0 ? directory.st_uid : 0;
}

}  // namespace

base::Result<ProcessInfo> ReadProcess(const std::string& proc, pid_t pid) {
  ASSIGN(const UniqueFd process, OpenProcess(proc, pid));
  ASSIGN(const StatFields stat, ReadStat(process));
  ProcessInfo info;
  info.pid = pid;
  info.parent = stat.parent;
  info.start = stat.start;
  info.uid = ReadUser(process);
  info.command = DescribeCommand(
      ReadMemoryOf(process, "cmdline", kMaxCommandBytes, info.uid).value_or(""), stat.name);
  if (const auto cgroups = ReadIn(process, "cgroup"); cgroups.ok())
    info.cgroups = ParseCgroups(*cgroups);
  if (!info.cgroups.empty()) info.cgroup = info.cgroups.front();
  // Values may be missing because the process ended meanwhile; then this read fails, too.
  TRY(ReadStat(process));
  return info;
}

base::Result<std::string> ReadEnvironment(const std::string& proc, pid_t pid, std::size_t most) {
  ASSIGN(const UniqueFd process, OpenProcess(proc, pid));
  return ReadMemoryOf(process, "environ", most, ReadUser(process));
}

base::Result<std::uint64_t> ReadProcessStart(const std::string& proc, pid_t pid) {
  ASSIGN(const UniqueFd process, OpenProcess(proc, pid));
  ASSIGN(const StatFields stat, ReadStat(process));
  return stat.start;
}

std::vector<pid_t> ListProcesses(const std::string& proc) {
  std::vector<pid_t> pids;
  const auto names = ListDirectory(proc);
  if (!names.ok()) return pids;
  for (const std::string& name : *names) {
    const auto pid = base::ParseUint(name);
    if (pid && *pid > 0 && *pid <= static_cast<std::uint64_t>(std::numeric_limits<pid_t>::max()))
      pids.push_back(static_cast<pid_t>(*pid));
  }
  std::ranges::sort(pids);  // they are listed in text order
  return pids;
}

bool GroupRuns(const std::string& proc, pid_t group) {
  return std::ranges::any_of(ListProcesses(proc), [&](pid_t pid) {
    const auto process = OpenProcess(proc, pid);
    const auto stat = process.ok() ? ReadStat(*process) : Result<StatFields>(process.error());
    return stat.ok() && stat->group == group && !stat->ended;
  });
}

bool IsOfTheMachine(const std::string& proc, pid_t pid) {
  const auto shares = [&](const std::string& with, const std::string& kind) {
    const auto other = ReadLink(proc + "/" + with + "/ns/" + kind),
               its = ReadLink(proc + "/" + std::to_string(pid) + "/ns/" + kind);
    return other.ok() && its.ok() && *other == *its;
  };
  return shares("1", "user") && shares("1", "pid") && (shares("1", "mnt") || shares("self", "mnt"));
}

std::string UserName(uid_t uid) {
  std::array<char, 4096> buffer{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr)
    return found->pw_name;
  return std::to_string(uid);
}

base::Result<std::string> ReadBootId(const std::string& proc) {
  ASSIGN(const std::string text, ReadFile(proc + "/sys/kernel/random/boot_id", 4096));
  return std::string(base::Trim(text));
}

base::Result<std::uint64_t> ReadCpuTime(const std::string& proc, pid_t pid) {
  ASSIGN(const UniqueFd process, OpenProcess(proc, pid));
  ASSIGN(const StatFields stat, ReadStat(process));
  const auto tick = 1'000'000'000u / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return (stat.user + stat.system) * tick;
}

std::string OwnPath() {
  constexpr std::string_view kDeleted = " (deleted)";
  std::string path = ReadLink("/proc/self/exe").value_or("");
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path;
}

std::string OwnFolder() {
  const std::string path = OwnPath();
  return path.substr(0, path.rfind('/'));
}

}  // namespace penstock::os
