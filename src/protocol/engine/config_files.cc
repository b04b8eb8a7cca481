// Replaces a file together with its owner, mode and label, and follows links below a root.
#include "protocol/engine/config_files.h"

#include <array>
#include <cerrno>

#include <fcntl.h>
#include <fnmatch.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/replace_file.h"

namespace penstock::protocol::engine {
namespace {

constexpr std::size_t kMaxBytes = 4u << 20;
constexpr char kLabel[] = "security.selinux";

/// A file system without labels has none to keep.
void CopyLabel(int from, int to) {
  std::array<char, 256> label;
  const ssize_t length = ::fgetxattr(from, kLabel, label.data(), label.size());
  if (length > 0) ::fsetxattr(to, kLabel, label.data(), static_cast<std::size_t>(length), 0);
}

/// Gives a new file the owner, mode and label of the one that it replaces.
Status TakeAfter(const std::string& path, int file) {
  const os::UniqueFd old(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat status {};
  if (!old)
    return ::fchmod(file, 0644) == 0 ? Status() : ErrnoError(errno, "set the mode of " + path);
  if (::fstat(old.get(), &status) != 0) return ErrnoError(errno, "stat " + path);
  if (::fchown(file, status.st_uid, status.st_gid) != 0)
    return ErrnoError(errno, "keep the owner of " + path);
  if (::fchmod(file, status.st_mode & 07777) != 0)
    return ErrnoError(errno, "keep the mode of " + path);
  CopyLabel(old.get(), file);
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
  ASSIGN(const os::UniqueFd folder, root_.OpenFile(base::FolderOf(path), O_PATH | O_DIRECTORY));
  ASSIGN(const std::string real, root_.PathOf(folder));
  return (root_.path() == "/" ? "" : root_.path()) + (real == "/" ? "" : real) + "/" +
         base::LeafOf(path);
}

Status ConfigFiles::Write(const std::string& path, const std::string& content) const {
  if (!root_.Exists(base::FolderOf(path)))
    TRY(os::MakeDirectories((root_.path() == "/" ? "" : root_.path()) + base::FolderOf(path)));
  ASSIGN(const std::string real, RealPath(path));
  return os::ReplaceFile(real, content, [&real](int file) { return TakeAfter(real, file); });
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
  os::SyncFolder(base::FolderOf(real));
  return {};
}

Status ConfigFiles::RemoveLink(const std::string& path, const std::string& target) const {
  if (LinkTarget(path) != target) return {};
  ASSIGN(const std::string real, InRealFolder(path));
  if (::unlink(real.c_str()) != 0 && errno != ENOENT)
    return ErrnoError(errno, "remove the link " + path);
  os::SyncFolder(base::FolderOf(real));
  return {};
}

Status ConfigFiles::Remove(const std::string& path) const {
  if (!root_.Exists(path)) return {};
  ASSIGN(const std::string real, RealPath(path));
  if (::unlink(real.c_str()) != 0 && errno != ENOENT) return ErrnoError(errno, "remove " + path);
  os::SyncFolder(base::FolderOf(real));
  return {};
}

std::vector<std::string> ConfigFiles::Match(const std::string& pattern) const {
  if (pattern.find_first_of("*?[") == std::string::npos) return {pattern};
  std::vector<std::string> paths;
  const auto names = root_.List(base::FolderOf(pattern));
  if (!names.ok()) return paths;
  for (const std::string& name : *names)
    if (::fnmatch(base::LeafOf(pattern).c_str(), name.c_str(), FNM_PERIOD) == 0)
      paths.push_back(base::FolderOf(pattern) + "/" + name);
  return paths;
}

}  // namespace penstock::protocol::engine
