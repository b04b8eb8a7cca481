#include "os/core/confined_tree.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/core/strings.h"

namespace penstock::os {
namespace {

constexpr int kDirectory = O_PATH | O_DIRECTORY | O_CLOEXEC;

int OpenConfined(int root, const char* path, int flags, std::uint64_t resolve) {
  open_how how{};
  how.flags = static_cast<std::uint64_t>(flags);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | resolve;
  // EAGAIN: a folder on the way was renamed meanwhile, and the kernel cannot decide whether ".."
  // was safe (openat2(2)). The limit on attempts ends the loop against a process that renames
  // without end.
  for (int attempt = 0;; ++attempt) {
    const long fd = ::syscall(SYS_openat2, root, path, &how, sizeof how);
    if (fd >= 0 || (errno != EAGAIN && errno != EINTR) || attempt == 1000)
      return static_cast<int>(fd);
  }
}

// Replaces the empty path, which openat2 rejects.
std::string Below(const std::string& path) {
  const auto start = path.find_first_not_of('/');
  return start == std::string::npos ? "." : path.substr(start);
}

Result<struct stat> StatusOf(int fd, const std::string& name) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return ErrnoError(errno, "stat " + name);
  return status;
}

Status RefuseSystemRoot(int fd, const std::string& path) {
  ASSIGN(const struct stat here, StatusOf(fd, path));
  struct stat system {};
  if (::stat("/", &system) == 0 && here.st_dev == system.st_dev && here.st_ino == system.st_ino)
    return Error(Code::kInvalidArgument,
                 path + " is this machine's own root directory, not a container's");
  return {};
}

// Opens the file of an O_PATH descriptor for reading: the only way that cannot open a different
// file.
UniqueFd Reopen(int fd, int flags) {
  return UniqueFd(
      ::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), flags | O_CLOEXEC | O_NOCTTY));
}

struct Place {
  std::string folder;
  std::string name;
};

Result<Place> Split(const std::string& path) {
  const std::string clean = CleanPath(path);
  if (clean == "/") return Error(Code::kInvalidArgument, "\"" + path + "\" does not name a file");
  const auto slash = clean.rfind('/');
  return Place{clean.substr(0, slash), clean.substr(slash + 1)};
}

Result<std::string> RandomName() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != sizeof number)
    return ErrnoError(errno, "get a random number");
  std::array<char, 40> name{};
  std::snprintf(name.data(), name.size(), ".penstock-%016llx",
                static_cast<unsigned long long>(number));
  return std::string(name.data());
}

/// A new file or link beside its final place, under a random name; removed unless it is put in
/// place.
class Beside {
 public:
  static Result<Beside> File(int folder, const std::string& path, std::string_view content,
                             unsigned mode) {
    ASSIGN(std::string name, RandomName());
    const UniqueFd file(
        ::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    if (!file) return ErrnoError(errno, "create a file next to " + path);
    Beside beside(folder, std::move(name), path);
    TRY(WriteAll(file.get(), content, path));
    if (::fchmod(file.get(), mode) != 0) return ErrnoError(errno, "set the mode of " + path);
    return beside;
  }

  static Result<Beside> Link(int folder, const std::string& path, const std::string& target) {
    ASSIGN(std::string name, RandomName());
    if (::symlinkat(target.c_str(), folder, name.c_str()) != 0)
      return ErrnoError(errno, "create a link next to " + path);
    return Beside(folder, std::move(name), path);
  }

  Beside(Beside&& other) noexcept
      : folder_(other.folder_),
        name_(std::exchange(other.name_, {})),
        path_(std::move(other.path_)) {}
  Beside& operator=(Beside&&) = delete;
  ~Beside() {
    if (!name_.empty()) ::unlinkat(folder_, name_.c_str(), 0);
  }

  Status Replace(const std::string& name) && {
    if (::renameat(folder_, name_.c_str(), folder_, name.c_str()) == 0) {
      name_.clear();
      return {};
    }
    if (errno == EISDIR)
      return Error(Code::kAlreadyExists, "cannot replace " + path_ + ": it is a directory");
    return ErrnoError(errno, "replace " + path_);
  }

  // Puts it in place under a second name, since link(2) never replaces anything; the destructor
  // removes the first name.
  Status Occupy(const std::string& name) && {
    if (::linkat(folder_, name_.c_str(), folder_, name.c_str(), 0) != 0)
      return ErrnoError(errno, "create " + path_);
    return {};
  }

 private:
  Beside(int folder, std::string name, std::string path)
      : folder_(folder), name_(std::move(name)), path_(std::move(path)) {}
  int folder_;
  std::string name_;
  std::string path_;
};

bool SaysTheSame(int folder, const std::string& name, const std::string& target) {
  std::string there(target.size() + 1, '\0');
  const ssize_t length = ::readlinkat(folder, name.c_str(), there.data(), there.size());
  return length >= 0 && static_cast<std::size_t>(length) == target.size() &&
         there.compare(0, target.size(), target) == 0;
}

}  // namespace

Result<ConfinedTree> ConfinedTree::Open(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), kDirectory));
  if (!fd) return ErrnoError(errno, "open the directory " + path);
  return Take(std::move(fd), path);
}

Result<ConfinedTree> ConfinedTree::Take(UniqueFd directory, std::string path) {
  TRY(RefuseSystemRoot(directory.get(), path));
  // A seccomp filter that does not know openat2 may return any errno, so test with a call that must
  // succeed.
  const UniqueFd self(OpenConfined(directory.get(), ".", kDirectory, 0));
  if (!self)
    return Error(Code::kUnimplemented,
                 "this kernel cannot confine paths to " + path +
                     ": openat2 requires Linux 5.6, and no filter that denies it");
  return ConfinedTree(std::move(path), std::move(directory));
}

UniqueFd ConfinedTree::TryOpen(const std::string& path, int flags, Mounts mounts) const {
  return UniqueFd(OpenConfined(fd_.get(), os::Below(path).c_str(), flags | O_CLOEXEC,
                               mounts == Mounts::kOwn ? RESOLVE_NO_XDEV : 0));
}

Error ConfinedTree::Explain(int error, const std::string& doing, const std::string& path) const {
  if (error == EXDEV)
    return {Code::kFailedPrecondition, "cannot " + doing + " " + path + " in " + path_ +
                                           ": it is on a separate mount, which is not changed"};
  return ErrnoError(error, doing + " " + path + " in " + path_);
}

Result<UniqueFd> ConfinedTree::Open(const std::string& path, int flags, Mounts mounts) const {
  UniqueFd fd = TryOpen(path, flags, mounts);
  if (!fd) return Explain(errno, "open", path);
  return fd;
}

Result<ConfinedTree> ConfinedTree::Below(const std::string& path) const {
  ASSIGN(UniqueFd fd, Open(path, kDirectory, Mounts::kAll));
  return ConfinedTree(path_ + CleanPath(path), std::move(fd));
}

Result<UniqueFd> ConfinedTree::Locate(const std::string& path) const {
  return Open(path, O_PATH, Mounts::kAll);
}

Result<UniqueFd> ConfinedTree::OpenRegular(const std::string& path) const {
  ASSIGN(const UniqueFd found, Locate(path));
  ASSIGN(const struct stat status, StatusOf(found.get(), path));
  if (!S_ISREG(status.st_mode))
    return Error(Code::kInvalidArgument, path + " in " + path_ + " is not a regular file");
  UniqueFd file = Reopen(found.get(), O_RDONLY);
  if (!file) return Explain(errno, "read", path);
  return file;
}

Result<std::string> ConfinedTree::Read(const std::string& path, std::size_t most) const {
  ASSIGN(const UniqueFd file, OpenRegular(path));
  return ReadAll(file.get(), path + " in " + path_, most);
}

Result<std::vector<TreeEntry>> ConfinedTree::List(const std::string& path, std::size_t most) const {
  ASSIGN(UniqueFd fd, Open(path, O_RDONLY | O_DIRECTORY | O_NOCTTY, Mounts::kAll));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd.get()), ::closedir);
  if (!stream) return Explain(errno, "list", path);
  fd.Release();
  std::vector<TreeEntry> entries;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (entries.size() == most)
      return Error(Code::kResourceExhausted,
                   path + " in " + path_ + " has more than " + std::to_string(most) + " entries");
    entries.push_back({std::string(name), entry->d_type});
  }
  if (errno != 0) return Explain(errno, "list", path);
  std::ranges::sort(entries, {}, &TreeEntry::name);
  return entries;
}

Result<std::string> ConfinedTree::ReadLink(const std::string& path) const {
  ASSIGN(const UniqueFd fd, Open(path, O_PATH | O_NOFOLLOW, Mounts::kAll));
  std::string target(4096, '\0');
  const ssize_t length = ::readlinkat(fd.get(), "", target.data(), target.size());
  // readlinkat with the empty path works only for links; for anything else the kernel returns
  // ENOENT, where readlink(2) returns EINVAL.
  if (length < 0) return Explain(errno == ENOENT ? EINVAL : errno, "read the link", path);
  target.resize(static_cast<std::size_t>(length));
  return target;
}

Result<UniqueFd> ConfinedTree::MakeDirectories(const std::string& path, unsigned mode) const {
  const std::string clean = CleanPath(path);
  UniqueFd folder = TryOpen(clean, kDirectory, Mounts::kOwn);
  if (folder) return folder;
  if (errno != ENOENT) return Explain(errno, "open", clean);
  folder = TryOpen("/", kDirectory, Mounts::kOwn);
  std::size_t end = 0;
  do {
    const std::size_t begin = end + 1;
    end = clean.find('/', begin);
    ASSIGN(folder,
           EnterOrMake(folder.get(), clean.substr(0, end), clean.substr(begin, end - begin), mode));
  } while (end != std::string::npos);
  return folder;
}

Result<UniqueFd> ConfinedTree::EnterOrMake(int parent, const std::string& path,
                                           const std::string& name, unsigned mode) const {
  UniqueFd folder = TryOpen(path, kDirectory, Mounts::kOwn);
  if (!folder && errno == ENOENT) {
    if (::mkdirat(parent, name.c_str(), mode) != 0 && errno != EEXIST)
      return Explain(errno, "create the directory", path);
    folder = TryOpen(path, kDirectory, Mounts::kOwn);
    if (!folder && errno == ENOENT)
      return Error(Code::kFailedPrecondition, "cannot create the directory " + path + " in " +
                                                  path_ + ": the name is taken by a dangling link");
  }
  if (!folder) return Explain(errno, "open", path);
  return folder;
}

Status ConfinedTree::Write(const std::string& path, std::string_view content, unsigned mode) const {
  ASSIGN(const Place place, Split(path));
  ASSIGN(const UniqueFd folder, MakeDirectories(place.folder));
  ASSIGN(Beside file, Beside::File(folder.get(), path, content, mode));
  return std::move(file).Replace(place.name);
}

Status ConfinedTree::Create(const std::string& path, std::string_view content,
                            unsigned mode) const {
  ASSIGN(const Place place, Split(path));
  ASSIGN(const UniqueFd folder, MakeDirectories(place.folder));
  ASSIGN(Beside file, Beside::File(folder.get(), path, content, mode));
  return std::move(file).Occupy(place.name);
}

Status ConfinedTree::WriteLink(const std::string& target, const std::string& path) const {
  ASSIGN(const Place place, Split(path));
  ASSIGN(const UniqueFd folder, MakeDirectories(place.folder));
  if (SaysTheSame(folder.get(), place.name, target)) return {};
  ASSIGN(Beside link, Beside::Link(folder.get(), path, target));
  return std::move(link).Replace(place.name);
}

Status ConfinedTree::Remove(const std::string& path) const {
  ASSIGN(const Place place, Split(path));
  const UniqueFd folder = TryOpen(place.folder, kDirectory, Mounts::kOwn);
  if (!folder) return errno == ENOENT ? Status() : Status(Explain(errno, "remove", path));
  if (::unlinkat(folder.get(), place.name.c_str(), 0) != 0 && errno != ENOENT)
    return Explain(errno, "remove", path);
  return {};
}

Status ConfinedTree::ChangeMode(const std::string& path, unsigned mode) const {
  ASSIGN(const UniqueFd found, Open(path, O_PATH, Mounts::kOwn));
  if (::chmod(("/proc/self/fd/" + std::to_string(found.get())).c_str(), mode) != 0)
    return Explain(errno, "set the mode of", path);
  return {};
}

std::string CleanPath(std::string_view path) {
  std::vector<std::string> parts;
  for (std::string& part : base::Split(path, '/')) {
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (!part.empty() && part != "." && part != "..") parts.push_back(std::move(part));
  }
  return "/" + base::Join(parts, "/");
}

}  // namespace penstock::os
