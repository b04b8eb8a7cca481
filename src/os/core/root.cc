// Opens paths below a root with openat2; never resolves a path itself.
#include "os/core/root.h"

#include <cerrno>
#include <cstdint>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace penstock::os {
namespace {

int OpenInRoot(int root, const char* path, int flags) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.mode = (flags & O_CREAT) != 0 ? 0644 : 0;
  how.resolve = RESOLVE_IN_ROOT;
  // EAGAIN: a folder on the way was renamed meanwhile, and the kernel cannot decide whether ".."
  // was safe (openat2(2)).
  for (int attempt = 0;; ++attempt) {
    const long fd = ::syscall(SYS_openat2, root, path, &how, sizeof how);
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || attempt == 100)
      return static_cast<int>(fd);
  }
}

bool IsSystemRoot(int fd) {
  struct stat here {
  }, system{};
  return ::fstat(fd, &here) == 0 && ::stat("/", &system) == 0 && here.st_dev == system.st_dev &&
         here.st_ino == system.st_ino;
}

// A seccomp filter that does not know openat2 may return any errno, so test with a call that must
// succeed.
bool KernelConfines(int root) {
  return static_cast<bool>(UniqueFd(OpenInRoot(root, ".", O_PATH | O_CLOEXEC)));
}

/// Like getcwd(2) for any descriptor (proc(5)).
base::Result<std::string> PathOfDescriptor(int fd) {
  std::string path(4096, '\0');
  const ssize_t length =
      ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path.data(), path.size());
  if (length < 0) return ErrnoError(errno, "read /proc/self/fd");
  path.resize(static_cast<std::size_t>(length));
  return path;
}

}  // namespace

base::Result<Root> Root::Open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return ErrnoError(errno, "open the root " + path);
  const bool confined = !IsSystemRoot(fd.get()) && KernelConfines(fd.get());
  return Root(path, std::move(fd), confined);
}

base::Result<Root> Root::OpenBelow(const std::string& path) const {
  ASSIGN(UniqueFd fd, OpenFile(path, O_PATH | O_DIRECTORY));
  const bool confined = confined_ || KernelConfines(fd.get());
  return Root(path_ + (path.starts_with('/') ? "" : "/") + path, std::move(fd), confined);
}

base::Result<UniqueFd> Root::OpenFile(const std::string& path, int flags) const {
  flags |= O_CLOEXEC;
  if ((flags & O_PATH) == 0) flags |= O_NOCTTY;  // openat2 rejects flags that O_PATH would ignore
  const auto start = path.find_first_not_of('/');
  const std::string below = start == std::string::npos ? "." : path.substr(start);
  UniqueFd fd(confined_ ? OpenInRoot(fd_.get(), below.c_str(), flags)
                        : ::openat(fd_.get(), below.c_str(), flags, 0644));
  if (!fd) return ErrnoError(errno, "open " + path + (path_ == "/" ? "" : " in " + path_));
  return fd;
}

base::Result<std::string> Root::Read(const std::string& path, std::size_t most) const {
  ASSIGN(const UniqueFd fd, OpenFile(path, O_RDONLY | O_NONBLOCK));
  return ReadRegular(fd.get(), path, most);
}

base::Result<std::vector<std::string>> Root::List(const std::string& path) const {
  ASSIGN(UniqueFd fd, OpenFile(path, O_RDONLY | O_DIRECTORY));
  return ListAll(std::move(fd), path);
}

base::Result<std::string> Root::ReadLink(const std::string& path) const {
  ASSIGN(const UniqueFd fd, OpenFile(path, O_PATH | O_NOFOLLOW));
  std::string target(4096, '\0');
  const ssize_t length = ::readlinkat(fd.get(), "", target.data(), target.size());
  // readlinkat with the empty path works only for links; for anything else the kernel returns
  // ENOENT, where readlink(2) returns EINVAL.
  if (length < 0) return ErrnoError(errno == ENOENT ? EINVAL : errno, "read the link " + path);
  target.resize(static_cast<std::size_t>(length));
  return target;
}

base::Result<std::string> Root::PathOf(const UniqueFd& file) const {
  ASSIGN(std::string root, PathOfDescriptor(fd_.get()));
  ASSIGN(std::string path, PathOfDescriptor(file.get()));
  if (root == "/") root.clear();
  if (path == root) return std::string("/");
  const auto not_below = [&] {
    return base::Error(base::Code::kNotFound, path + " is not below " + path_);
  };
  if (!path.starts_with(root + "/")) return not_below();
  path.erase(0, root.size());
  // Looked up from the root: in another mount namespace, this process has no such path.
  const auto same = OpenFile(path, O_PATH | O_NOFOLLOW);
  struct stat there {
  }, opened{};
  if (!same.ok() || ::fstat(same->get(), &there) != 0 || ::fstat(file.get(), &opened) != 0 ||
      there.st_ino != opened.st_ino || there.st_dev != opened.st_dev)
    return not_below();
  return path;
}

bool Root::Exists(const std::string& path) const { return OpenFile(path, O_PATH).ok(); }

}  // namespace penstock::os
