#include "os/foreign_folder.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <tuple>
#include <utility>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/core/fd.h"

namespace penstock::os {
namespace {

base::Result<UniqueFd> OpenForeignFolder(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (fd) return fd;
  const int error = errno;
  struct stat status {};
  const bool exists = ::lstat(path.c_str(), &status) == 0;
  if (exists && S_ISLNK(status.st_mode))
    return base::Error(base::Code::kFailedPrecondition,
                       path + " is a symbolic link; name the directory that it leads to");
  if (exists && !S_ISDIR(status.st_mode))
    return base::Error(base::Code::kFailedPrecondition, path + " is not a directory");
  return ErrnoError(error, "open " + path);
}

/// Returns null for a file that may be read. `owner`: of the folder, who can move into it a file of
/// another user that is in another folder of the owner.
const char* WhyNotRead(const struct stat& status, uid_t owner) {
  if (S_ISLNK(status.st_mode)) return "is a symbolic link";
  if (S_ISDIR(status.st_mode)) return "is a directory";
  if (!S_ISREG(status.st_mode)) return "is not a regular file";
  if (status.st_nlink > 1) return "has further names (hard links)";
  if (status.st_uid != owner && (status.st_mode & S_IROTH) == 0)
    return "is private to another user than the directory's owner";
  return nullptr;
}

/// What was checked is what is opened: by its descriptor, whatever has its name meanwhile.
base::Result<UniqueFd> OpenChecked(int folder, uid_t owner, const std::string& name) {
  const UniqueFd found(::openat(folder, name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  if (!found) return ErrnoError(errno, "open");
  struct stat status {};
  if (::fstat(found.get(), &status) != 0) return ErrnoError(errno, "stat");
  if (const char* why = WhyNotRead(status, owner))
    return base::Error(base::Code::kInvalidArgument, why);
  UniqueFd file(::open(("/proc/self/fd/" + std::to_string(found.get())).c_str(),
                       O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!file) return ErrnoError(errno, "open");
  return file;
}

/// Returns one byte more than the limit, at most.
base::Result<std::string> ReadBeginning(int file, std::size_t most) {
  std::string text(most + 1, '\0');
  std::size_t filled = 0;
  while (filled < text.size()) {
    const ssize_t got = ::read(file, text.data() + filled, text.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError(errno, "read");
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return text;
}

ForeignFile ReadForeignFile(int folder, uid_t owner, const std::string& name, std::size_t most) {
  const auto file = OpenChecked(folder, owner, name);
  if (!file.ok()) return {name, file.error()};
  auto text = ReadBeginning(file->get(), most);
  const bool cut = text.ok() && text->size() > most;
  if (cut) text->resize(most);
  return {name, std::move(text), cut};
}

}  // namespace

base::Result<ForeignFolder> ReadForeignFolder(const std::string& path, const ForeignLimits& limits,
                                              const std::function<bool(std::string_view)>& wanted) {
  // O_NOFOLLOW does not see a link with a slash after it.
  ASSIGN(UniqueFd fd, OpenForeignFolder(path.substr(
                          0, std::max<std::size_t>(1, path.find_last_not_of('/') + 1))));
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(fd.get()), ::closedir);
  if (!stream) return ErrnoError(errno, "list " + path);
  const int folder = fd.Release();
  struct stat status {};
  if (::fstat(folder, &status) != 0) return ErrnoError(errno, "stat " + path);
  ForeignFolder found;
  std::vector<std::string> names;
  std::size_t entries = 0;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    found.more_entries = ++entries > limits.entries + 2;  // "." and ".."
    if (found.more_entries) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != ".." && wanted(name)) names.emplace_back(name);
    errno = 0;
  }
  if (errno != 0) return ErrnoError(errno, "list " + path);
  std::ranges::sort(names, [](const std::string& a, const std::string& b) {
    return std::tuple(a.size(), std::string_view(a)) < std::tuple(b.size(), std::string_view(b));
  });
  if (names.size() > limits.files) found.more_files = names.size() - limits.files;
  names.resize(std::min(names.size(), limits.files));
  for (const std::string& name : names) {
    ForeignFile file = ReadForeignFile(folder, status.st_uid, name, limits.bytes);
    const bool removed = !file.text.ok() && file.text.error().code() == base::Code::kNotFound;
    if (!removed) found.files.push_back(std::move(file));
  }
  return found;
}

}  // namespace penstock::os
