// Replaces a file by writing a temporary file beside it, giving it the mode, owner and label,
// syncing and renaming it.
#include "protocol/engine/config_files.h"

#include <array>
#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace penstock::protocol::engine {
namespace {

using base::Code;
using base::ErrnoError;
using base::Error;
using base::Status;

constexpr std::size_t kMaxBytes = 4u << 20;
constexpr char kLabel[] = "security.selinux";

std::string Folder(const std::string& path) { return path.substr(0, path.find_last_of('/')); }
std::string LeafOf(const std::string& path) { return path.substr(path.find_last_of('/') + 1); }

/// A file system without labels has none to keep.
void CopyLabel(int from, int to) {
  std::array<char, 256> label;
  const ssize_t length = ::fgetxattr(from, kLabel, label.data(), label.size());
  if (length > 0) ::fsetxattr(to, kLabel, label.data(), static_cast<std::size_t>(length), 0);
}

Status TakeAfter(const os::UniqueFd& old, int file, const std::string& path) {
  struct stat status {};
  if (::fstat(old.get(), &status) != 0) return ErrnoError(errno, "stat " + path);
  if (::fchown(file, status.st_uid, status.st_gid) != 0)
    return ErrnoError(errno, "keep the owner of " + path);
  if (::fchmod(file, status.st_mode & 07777) != 0)
    return ErrnoError(errno, "keep the mode of " + path);
  CopyLabel(old.get(), file);
  return {};
}

Status WriteWhole(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoError(errno, "write " + path);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Status Fill(os::UniqueFd file, const std::string& real, const std::string& content) {
  TRY(WriteWhole(file.get(), content, real));
  const os::UniqueFd old(::open(real.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (old) {
    TRY(TakeAfter(old, file.get(), real));
  } else if (::fchmod(file.get(), 0644) != 0) {
    return ErrnoError(errno, "set the mode of " + real);
  }
  if (::fsync(file.get()) != 0) return ErrnoError(errno, "sync " + real);
  return {};
}

void SyncFolder(const std::string& folder) {
  const os::UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) ::fsync(fd.get());
}

Status Replace(const std::string& real, const std::string& content) {
  const std::string folder = Folder(real);
  std::string temporary = folder + "/." + LeafOf(real) + ".XXXXXX";
  os::UniqueFd file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file) return ErrnoError(errno, "create a file in " + folder);
  Status done = Fill(std::move(file), real, content);
  if (done.ok() && ::rename(temporary.c_str(), real.c_str()) != 0)
    done = ErrnoError(errno, "replace " + real);
  if (!done.ok()) {
    ::unlink(temporary.c_str());
    return done;
  }
  SyncFolder(folder);
  return {};
}

}  // namespace

base::Result<ConfigFiles> ConfigFiles::Open(const std::string& root) {
  ASSIGN(os::Root opened, os::Root::Open(root.empty() ? "/" : root));
  return ConfigFiles(std::move(opened));
}

base::Result<std::optional<std::string>> ConfigFiles::Read(const std::string& path) const {
  auto text = root_.Read(path, kMaxBytes);
  if (text.ok()) return std::optional(*std::move(text));
  if (text.error().code() == Code::kNotFound) return std::optional<std::string>();
  return text.error();
}

/// Returns the real path of the file or, if it does not exist, of its folder, as this program sees
/// it.
base::Result<std::string> ConfigFiles::RealPath(const std::string& path) const {
  const std::string top = root_.path() == "/" ? "" : root_.path();
  if (auto file = root_.OpenFile(path, O_PATH); file.ok()) {
    ASSIGN(const std::string real, root_.PathOf(*file));
    return top + real;
  }
  if (root_.ReadLink(path).ok())
    return Error(
        Code::kFailedPrecondition,
        path + " is a link to a file that does not exist: create that file, or remove the link");
  return InRealFolder(path);
}

/// Returns the path with its folder resolved; does not follow the last component.
base::Result<std::string> ConfigFiles::InRealFolder(const std::string& path) const {
  ASSIGN(const os::UniqueFd folder, root_.OpenFile(Folder(path), O_PATH | O_DIRECTORY));
  ASSIGN(const std::string real, root_.PathOf(folder));
  return (root_.path() == "/" ? "" : root_.path()) + (real == "/" ? "" : real) + "/" + LeafOf(path);
}

Status ConfigFiles::Write(const std::string& path, const std::string& content) const {
  if (!root_.Exists(Folder(path)))
    TRY(os::MakeDirectories((root_.path() == "/" ? "" : root_.path()) + Folder(path)));
  ASSIGN(const std::string real, RealPath(path));
  return Replace(real, content);
}

bool ConfigFiles::Holds(const std::string& path) const {
  return root_.Exists(path) || LinkTarget(path).has_value();
}

std::optional<std::string> ConfigFiles::LinkTarget(const std::string& path) const {
  auto target = root_.ReadLink(path);
  return target.ok() ? std::optional(*std::move(target)) : std::nullopt;
}

Status ConfigFiles::MakeLink(const std::string& path, const std::string& target) const {
  ASSIGN(const std::string real, InRealFolder(path));
  if (::symlink(target.c_str(), real.c_str()) != 0)
    return ErrnoError(errno, "create the link " + path);
  SyncFolder(Folder(real));
  return {};
}

Status ConfigFiles::RemoveLink(const std::string& path, const std::string& target) const {
  if (LinkTarget(path) != target) return {};
  ASSIGN(const std::string real, InRealFolder(path));
  if (::unlink(real.c_str()) != 0 && errno != ENOENT)
    return ErrnoError(errno, "remove the link " + path);
  SyncFolder(Folder(real));
  return {};
}

Status ConfigFiles::Remove(const std::string& path) const {
  if (!root_.Exists(path)) return {};
  ASSIGN(const std::string real, RealPath(path));
  if (::unlink(real.c_str()) != 0 && errno != ENOENT) return ErrnoError(errno, "remove " + path);
  SyncFolder(Folder(real));
  return {};
}

std::vector<std::string> ConfigFiles::Match(const std::string& pattern) const {
  if (pattern.find_first_of("*?[") == std::string::npos) return {pattern};
  std::vector<std::string> paths;
  const auto names = root_.List(Folder(pattern));
  if (!names.ok()) return paths;
  for (const std::string& name : *names)
    if (::fnmatch(LeafOf(pattern).c_str(), name.c_str(), FNM_PERIOD) == 0)
      paths.push_back(Folder(pattern) + "/" + name);
  return paths;
}

}  // namespace penstock::protocol::engine
