// All calls are relative to the folder that was checked, so that it cannot be exchanged in between.
#include "os/marker_files.h"

#include <cerrno>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"
#include "os/trusted_path.h"

namespace penstock::os {
namespace {

constexpr std::size_t kLongest = 4096;
constexpr mode_t kMarkerMode = 0644;  // programs of other users wait, too

/// Creates a folder below what only root can change.
base::Status Create(const std::string& folder) {
  std::string above = folder;
  while (!above.empty() && !Exists(above)) above = base::FolderOf(above);
  TRY(OpenTrusted("/", above.empty() ? "/" : above));
  return MakeDirectories(folder);
}

base::Result<UniqueFd> OpenFolder(const std::string& folder, bool create) {
  if (create && !Exists(folder)) TRY(Create(folder));
  struct stat about {};
  if (::lstat(folder.c_str(), &about) != 0) return ErrnoError(errno, "find " + folder);
  if (S_ISLNK(about.st_mode))
    return Error(Code::kPermissionDenied, folder + " is a symbolic link; remove it");
  ASSIGN(TrustedPath trusted, OpenTrusted("/", folder));
  if (!S_ISDIR(trusted.status.st_mode))
    return Error(Code::kFailedPrecondition, folder + " is not a folder");
  return std::move(trusted.fd);
}

bool Has(int folder, const std::string& name, const std::string& content) {
  const UniqueFd file(
      ::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file) return false;
  const auto text = ReadRegular(file.get(), name, kLongest);
  return text.ok() && *text == content;
}

base::Status Put(int folder, const std::string& path, const std::string& name,
                 const std::string& content) {
  if (Has(folder, name, content)) return {};
  const std::string next = "." + name + ".penstock";
  (void)::unlinkat(folder, next.c_str(), 0);  // of an agent that was killed
  const UniqueFd file(::openat(folder, next.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kMarkerMode));
  if (!file) return ErrnoError(errno, "create " + path + "/" + next);
  base::Status written = WriteAll(file.get(), content, path + "/" + next);
  if (written.ok() && ::fchmod(file.get(), kMarkerMode) != 0)
    written = ErrnoError(errno, "set the mode of " + path + "/" + next);
  if (written.ok() && ::renameat(folder, next.c_str(), folder, name.c_str()) != 0)
    written = ErrnoError(errno, "replace " + path + "/" + name);
  if (!written.ok()) (void)::unlinkat(folder, next.c_str(), 0);
  return written;
}

}  // namespace

base::Status UpdateMarkers(const std::string& folder,
                           const std::map<std::string, std::string>& wanted,
                           const std::vector<std::string>& unwanted) {
  auto opened = OpenFolder(folder, !wanted.empty());
  if (!opened.ok()) {
    const bool nothing = wanted.empty() && opened.error().code() == Code::kNotFound;
    return nothing ? base::Status() : base::Status(opened.error());
  }
  std::vector<std::string> problems;
  for (const auto& [name, content] : wanted)
    if (const auto put = Put(opened->get(), folder, name, content); !put.ok())
      problems.push_back(put.error().message());
  for (const std::string& name : unwanted)
    if (!wanted.contains(name) && ::unlinkat(opened->get(), name.c_str(), 0) != 0 &&
        errno != ENOENT)
      problems.push_back(ErrnoError(errno, "remove " + folder + "/" + name).message());
  if (problems.empty()) return {};
  return Error(Code::kUnknown, base::Join(problems, "; "));
}

}  // namespace penstock::os
