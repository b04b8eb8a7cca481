// flock and a pid.
#include "os/lock_file.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/file.h>

#include "base/core/strings.h"
#include "os/core/file.h"
#include "os/process.h"

namespace penstock::os {
namespace {

std::optional<pid_t> NamedIn(const std::string& path) {
  const auto content = ReadFile(path, 64);
  if (!content.ok()) return std::nullopt;
  const auto pid = base::ParseInt(base::Trim(*content));
  if (!pid || *pid < 1 || *pid > INT32_MAX) return std::nullopt;
  return static_cast<pid_t>(*pid);
}

base::Result<UniqueFd> Lock(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd) return base::ErrnoError(errno, "open " + path);
  while (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return base::ErrnoError(errno, "lock " + path);
    std::string holder = "another process";
    if (const auto pid = NamedIn(path)) {
      holder = "process " + std::to_string(*pid);
      if (const auto info = ReadProcess("/proc", *pid); info.ok()) holder += " (" + info->command + ")";
    }
    return base::Error(base::Code::kAlreadyExists, path + " is held by " + holder);
  }
  const std::string pid = std::to_string(::getpid()) + "\n";
  if (::ftruncate(fd.get(), 0) != 0 || ::pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size()))
    return base::ErrnoError(errno, "write " + path);
  return fd;
}

}  // namespace

base::Result<LockFile> LockFile::Take(const std::string& path) {
  ASSIGN(UniqueFd fd, Lock(path));
  return LockFile(std::move(fd));
}

std::optional<pid_t> LockFile::Holder(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd || ::flock(fd.get(), LOCK_SH | LOCK_NB) == 0) return std::nullopt;
  return NamedIn(path);
}

}  // namespace penstock::os
