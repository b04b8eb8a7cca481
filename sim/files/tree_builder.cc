#include "sim/files/tree_builder.h"

#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

namespace penstock::sim {

namespace fs = std::filesystem;

namespace {

std::string Parent(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

// Whether the kernel refuses to open a node that it could create: on a file system mounted with
// nodev (EACCES), or where the control group's device rules allow only mknod, as in container
// engines (EPERM).
bool IsRefused(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd < 0 && (errno == EACCES || errno == EPERM);
}

}  // namespace

bool TreeBuilder::Exists(const std::string& path) const {
  struct stat info {};
  return lstat(Path(path).c_str(), &info) == 0;
}

// A path that is replaced keeps its old file until then: no file is missing at any moment that a
// real machine always has.
bool TreeBuilder::Replace(const std::string& path,
                          const std::function<bool(const std::string& next)>& make) {
  Folder(Parent(path));
  const std::string full = Path(path), next = full + ".new";
  unlink(next.c_str());
  if (!make(next)) return false;
  if (rename(next.c_str(), full.c_str()) != 0) Fail(errno, "replace " + full);
  unlink(next.c_str());  // rename does nothing if both names are the same file
  std::erase_if(first_with_, [&](const auto& first) { return first.second == path; });
  return true;
}

bool TreeBuilder::HasFile(const std::string& path, std::string_view content, unsigned mode) const {
  const int fd = open(Path(path).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat info {};
  std::string there(content.size() + 1, '\0');
  const bool same = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
                    (info.st_mode & 07777) == mode &&
                    read(fd, there.data(), there.size()) == static_cast<ssize_t>(content.size()) &&
                    there.starts_with(content);
  close(fd);
  return same;
}

bool TreeBuilder::HasLink(const std::string& path, const std::string& target) const {
  std::error_code error;
  return fs::read_symlink(Path(path), error) == target && !error;
}

bool TreeBuilder::IsNameOf(const std::string& path, const std::string& full) const {
  struct stat here {
  }, there{};
  return lstat(Path(path).c_str(), &here) == 0 && lstat(full.c_str(), &there) == 0 &&
         here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

bool TreeBuilder::MakeAnotherName(const std::string& path, const std::string& equal_to) {
  const auto first = first_with_.find(equal_to);
  if (first == first_with_.end()) return false;
  const std::string there = Path(first->second);
  return Replace(
      path, [&there](const std::string& next) { return link(there.c_str(), next.c_str()) == 0; });
}

void TreeBuilder::File(const std::string& path, std::string_view content, unsigned mode) {
  const std::string text =
      std::string(content) + (content.empty() || content.back() == '\n' ? "" : "\n");
  const bool shared = mode == 0444;
  if (!shared || HasFile(path, text, mode) || !MakeAnotherName(path, text)) Bytes(path, text, mode);
  if (shared) first_with_.insert_or_assign(text, path);
}

void TreeBuilder::Bytes(const std::string& path, const std::string& content, unsigned mode) {
  if (HasFile(path, content, mode)) return;
  Replace(path, [&](const std::string& next) {
    const int fd = open(next.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd < 0) return Fail(errno, "create " + next), false;
    if (write(fd, content.data(), content.size()) != static_cast<ssize_t>(content.size()))
      Fail(errno, "write " + next);
    fchmod(fd, mode);
    close(fd);
    return true;
  });
}

void TreeBuilder::Folder(const std::string& path) {
  if (folders_.count(path) != 0) return;
  std::error_code error;
  fs::create_directories(Path(path), error);
  if (error) return Fail(error.value(), "create " + Path(path));
  folders_.insert(path);
}

void TreeBuilder::Link(const std::string& path, const std::string& target) {
  const std::string text = "-> " + target;
  if (!HasLink(path, target) && !MakeAnotherName(path, text))
    Replace(path, [&](const std::string& next) {
      if (symlink(target.c_str(), next.c_str()) == 0) return true;
      return Fail(errno, "link " + Path(path)), false;
    });
  first_with_.insert_or_assign(text, path);
}

void TreeBuilder::Copy(const std::string& from, const std::string& path,
                       const std::function<base::Status(const std::string&)>& edit) {
  Folder(Parent(path));
  std::error_code error;
  const std::string temporary = Path(path) + ".new";
  fs::copy_file(from, temporary, fs::copy_options::overwrite_existing, error);
  if (!error)
    if (const auto edited = edit(temporary); !edited.ok() && error_.empty())
      error_ = edited.error().message();
  if (!error) fs::rename(temporary, Path(path), error);
  if (error) Fail(error.value(), "copy " + from + " to " + Path(path));
}

void TreeBuilder::HardLink(const std::string& from, const std::string& path) {
  if (IsNameOf(path, Path(from))) return;
  Replace(path, [&](const std::string& next) {
    if (link(Path(from).c_str(), next.c_str()) == 0) return true;
    return Fail(errno, "link " + Path(path)), false;
  });
}

void TreeBuilder::Borrow(const std::string& from, const std::string& path) {
  if (IsNameOf(path, from)) return;
  if (!Replace(path,
               [&from](const std::string& next) { return link(from.c_str(), next.c_str()) == 0; }))
    Copy(from, path);
}

void TreeBuilder::Device(const std::string& path, unsigned major_number, unsigned minor_number,
                         unsigned mode) {
  struct stat info {};
  const bool there = lstat(Path(path).c_str(), &info) == 0;
  if (there && S_ISCHR(info.st_mode) && info.st_rdev == makedev(major_number, minor_number)) return;
  if (can_make_devices_) {
    int error = 0;
    const bool made = Replace(path, [&](const std::string& next) {
      if (mknod(next.c_str(), S_IFCHR | mode, makedev(major_number, minor_number)) != 0)
        return error = errno, false;
      chmod(next.c_str(), mode);
      // The result for the first node applies to all.
      if (!has_made_device_ && IsRefused(next)) return unlink(next.c_str()), error = EPERM, false;
      return has_made_device_ = true;
    });
    if (made) return;
    if (error != EPERM && error != EACCES) return Fail(error, "make device " + Path(path));
    can_make_devices_ = false;
  }
  if (!there || !S_ISREG(info.st_mode)) File(path, "", mode);
}

void TreeBuilder::Socket(const std::string& path) {
  Folder(Parent(path));
  if (mknod(Path(path).c_str(), S_IFSOCK | 0666, 0) != 0 && errno != EEXIST)
    return Fail(errno, "make socket " + Path(path));
  chmod(Path(path).c_str(), 0666);
}

void TreeBuilder::Remove(const std::string& path) {
  folders_.clear();
  std::error_code error;
  fs::remove_all(Path(path), error);
  if (error) Fail(error.value(), "remove " + Path(path));
}

void TreeBuilder::Fail(int error, const std::string& doing) {
  if (error_.empty()) error_ = base::ErrnoError(error, doing).message();
}

}  // namespace penstock::sim
