#include "os/device_file.h"

#include <cerrno>
#include <optional>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "os/core/fd.h"
#include "os/core/file.h"

namespace penstock::os {
namespace {

/// Nothing: there is no such file.
Result<std::optional<struct stat>> Look(int folder, const std::string& name) {
  struct stat about {};
  if (::fstatat(folder, name.c_str(), &about, AT_SYMLINK_NOFOLLOW) == 0)
    return std::optional(about);
  if (errno == ENOENT) return std::optional<struct stat>();
  return ErrnoError(errno, name);
}

/// What is in a folder in which others can write may change at any moment.
Status IsOursAlone(int folder, const std::string& name) {
  struct stat about {};
  if (::fstat(folder, &about) != 0) return ErrnoError(errno, name);
  const bool ours = about.st_uid == 0 || about.st_uid == ::geteuid();
  if (ours && (about.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return Error(Code::kFailedPrecondition, name + ": others can write in this folder");
}

}  // namespace

Status PutDeviceFile(const std::string& folder, const std::string& name, std::uint32_t major,
                     std::uint32_t minor, mode_t mode) {
  const UniqueFd in(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!in) return ErrnoError(errno, folder);
  TRY(IsOursAlone(in.get(), folder));
  ASSIGN(const auto there, Look(in.get(), name));
  const dev_t device = makedev(major, minor);
  if (there && !S_ISCHR(there->st_mode))
    return Error(Code::kFailedPrecondition, folder + "/" + name + " is not a device file");
  if (there && there->st_rdev == device) return {};
  const std::string next = "." + name + ".new";
  (void)::unlinkat(in.get(), next.c_str(), 0);  // of a process that ended before it was renamed
  if (::mknodat(in.get(), next.c_str(), S_IFCHR | mode, device) != 0)
    return ErrnoError(errno, folder + "/" + next);
  if (::fchmodat(in.get(), next.c_str(), mode, 0) == 0 &&
      ::renameat(in.get(), next.c_str(), in.get(), name.c_str()) == 0)
    return {};
  const Error failed = ErrnoError(errno, folder + "/" + name);
  (void)::unlinkat(in.get(), next.c_str(), 0);
  return failed;
}

bool HasDeviceFiles(const std::string& root) {
  return Exists(root + "/dev") || Exists(root + "/null");
}

}  // namespace penstock::os
