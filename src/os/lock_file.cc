// Implements the lock with flock and a pid in the file.
#include "os/lock_file.h"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"
#include "os/process/process.h"
#include "os/process/process_text.h"

namespace penstock::os {
namespace {

constexpr int kFlags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
constexpr mode_t kMode = 0600;
constexpr int kMaxTries = 16;

std::optional<pid_t> NamedIn(const std::string& path) {
  const auto content = ReadFile(path, 64);
  if (!content.ok()) return std::nullopt;
  const auto pid = base::ParseInt(base::Trim(*content));
  if (!pid || *pid < 1 || *pid > INT32_MAX) return std::nullopt;
  return static_cast<pid_t>(*pid);
}

bool IsSame(const struct stat& one, const struct stat& other) {
  return one.st_dev == other.st_dev && one.st_ino == other.st_ino;
}

/// Whether the path still refers to this file.
bool IsAt(const std::string& path, const struct stat& file) {
  struct stat there {};
  return ::lstat(path.c_str(), &there) == 0 && IsSame(there, file);
}

bool OthersCanOpen(const struct stat& file) {
  return (file.st_mode & 0077) != 0 || (file.st_uid != 0 && file.st_uid != ::geteuid());
}

/// Whether one of a process's descriptors refers to the file and holds a lock on it (proc(5),
/// fdinfo).
bool HasLock(pid_t pid, const struct stat& file) {
  const std::string process = "/proc/" + std::to_string(pid);
  const auto numbers = ListDirectory(process + "/fd");
  if (!numbers.ok()) return false;
  return std::ranges::any_of(*numbers, [&](const std::string& number) {
    struct stat opened {};
    if (::stat((process + "/fd/" + number).c_str(), &opened) != 0 || !IsSame(opened, file))
      return false;
    const auto info = ReadFile(process + "/fdinfo/" + number, 65536);
    return info.ok() && info->find("FLOCK") != std::string::npos;
  });
}

bool IsForeign(pid_t pid) {
  const auto status = ReadFile("/proc/" + std::to_string(pid) + "/status", 65536);
  const auto uid = status.ok() ? FindNumber(*status, "Uid") : std::nullopt;
  return uid && *uid != 0 && *uid != ::geteuid();
}

/// Whether all visible holders of the lock belong neither to root nor to this process's user.
bool IsHeldByOthers(const std::string& path, const struct stat& file) {
  if (const auto named = NamedIn(path); named && HasLock(*named, file)) return IsForeign(*named);
  std::vector<pid_t> holders = ListProcesses("/proc");
  std::erase_if(holders, [&](pid_t pid) { return !HasLock(pid, file); });
  return !holders.empty() && std::ranges::all_of(holders, IsForeign);
}

/// Removes a file that others can open, so that it can be replaced. Two processes that do this at
/// once take turns, so that neither removes the file that the other created.
base::Status Remove(const std::string& path, const struct stat& file) {
  const std::string turns = path + ".replaced";
  const UniqueFd turn(::open(turns.c_str(), O_RDWR | O_CREAT | kFlags, kMode));
  if (!turn) return ErrnoError(errno, "open " + turns);
  while (::flock(turn.get(), LOCK_EX) != 0)
    if (errno != EINTR) return ErrnoError(errno, "lock " + turns);
  if (IsAt(path, file) && ::unlink(path.c_str()) != 0) return ErrnoError(errno, "replace " + path);
  return {};
}

Error HeldError(const std::string& path, const struct stat& file) {
  std::string holder = "a process that is not visible from here";
  if (const auto pid = NamedIn(path); pid && HasLock(*pid, file))
    holder = "process " + std::to_string(*pid);
  return Error(Code::kAlreadyExists, path + " is held by " + holder);
}

/// Returns the locked file; an empty descriptor if the path refers to another file meanwhile, or if
/// the file was removed to be replaced.
base::Result<UniqueFd> TryLock(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | kFlags, kMode));
  if (!fd) return ErrnoError(errno, "open " + path);
  struct stat file {};
  if (::fstat(fd.get(), &file) != 0) return ErrnoError(errno, "stat " + path);
  const bool open_to_others = OthersCanOpen(file);
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return ErrnoError(errno, "lock " + path);
    if (!open_to_others || !IsHeldByOthers(path, file)) return HeldError(path, file);
    break;
  }
  if (open_to_others) {
    TRY(Remove(path, file));
    return UniqueFd();
  }
  return IsAt(path, file) ? std::move(fd) : UniqueFd();
}

base::Result<UniqueFd> Lock(const std::string& path) {
  UniqueFd fd;
  for (int tries = 0; !fd && tries < kMaxTries; ++tries) { ASSIGN(fd, TryLock(path)); }
  if (!fd)
    return Error(
        Code::kUnavailable,
        path + " is replaced repeatedly, or its folder's file system does not store file modes");
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 ||
      ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
    return ErrnoError(errno, "write " + path);
  return fd;
}

/// Returns the file's status if a process holds its lock.
base::Result<struct stat> StatHeld(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | kFlags));
  if (!fd) return ErrnoError(errno, "open " + path);
  if (::flock(fd.get(), LOCK_SH | LOCK_NB) == 0)
    return Error(Code::kNotFound, "no process holds " + path);
  struct stat file {};
  if (::fstat(fd.get(), &file) != 0) return ErrnoError(errno, "stat " + path);
  return file;
}

std::string ProgramName(pid_t pid) {
  constexpr std::string_view kDeleted = " (deleted)";
  std::string path = ReadLink("/proc/" + std::to_string(pid) + "/exe").value_or("");
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

base::Result<LockFile> LockFile::Take(const std::string& path) {
  ASSIGN(UniqueFd fd, Lock(path));
  return LockFile(std::move(fd));
}

base::Result<LockHolder> LockFile::Holder(const std::string& path) {
  ASSIGN(const struct stat file, StatHeld(path));
  const auto pid = NamedIn(path);
  // Open the pidfd first: facts that are then read by pid belong to that process, or it has ended.
  auto pidfd = OpenPidfd(pid.value_or(0));
  if (!pid || !pidfd.ok() || !HasLock(*pid, file))
    return Error(Code::kFailedPrecondition,
                 path + " is held by a process that is not visible from here");
  return LockHolder{*pid, *std::move(pidfd), ProgramName(*pid)};
}

bool LockFile::IsHeld(const std::string& path) { return StatHeld(path).ok(); }

}  // namespace penstock::os
