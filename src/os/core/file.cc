#include "os/core/file.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os/core/replace_file.h"

namespace penstock::os {
namespace {

bool EndsInOneOf(std::string_view name, std::span<const std::string_view> suffixes) {
  return std::ranges::any_of(suffixes,
                             [name](std::string_view suffix) { return name.ends_with(suffix); });
}

}  // namespace

base::Result<std::string> ReadAll(int fd, const std::string& name, std::size_t most) {
  std::string content;
  std::size_t filled = 0;
  for (;;) {
    if (filled == content.size()) content.resize(std::max<std::size_t>(4096, content.size() * 2));
    const ssize_t got = ::read(fd, content.data() + filled, content.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ErrnoError(errno, "read " + name);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
    if (filled > most)
      return base::Error(base::Code::kResourceExhausted,
                         name + " is larger than " + std::to_string(most) + " bytes");
  }
  content.resize(filled);
  return content;
}

base::Status WriteAll(int fd, std::string_view content, const std::string& name) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return ErrnoError(errno, "write " + name);
    content.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

base::Result<std::string> ReadRegular(int fd, const std::string& name, std::size_t most) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return ErrnoError(errno, "stat " + name);
  if (S_ISDIR(status.st_mode)) return ErrnoError(EISDIR, "read " + name);
  if (!S_ISREG(status.st_mode))
    return base::Error(base::Code::kInvalidArgument, name + " is not a regular file");
  return ReadAll(fd, name, most);
}

base::Result<std::string> ReadFile(const std::string& path, std::size_t most) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (!fd) return ErrnoError(errno, "open " + path);
  return ReadRegular(fd.get(), path, most);
}

base::Result<std::string> ReadInput(const std::string& path, std::size_t most) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return ErrnoError(errno, "open " + path);
  return ReadAll(fd.get(), path, most);
}

base::Status WriteFileAtomically(const std::string& path, std::string_view content, unsigned mode) {
  return ReplaceFile(path, content, [&path, mode](int file) {
    return ::fchmod(file, mode) == 0 ? base::Status()
                                     : ErrnoError(errno, "set the mode of " + path);
  });
}

base::Status WriteControlFile(const std::string& path, std::string_view content) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (!fd) return ErrnoError(errno, "open " + path);
  ssize_t written = 0;
  do {
    written = ::write(fd.get(), content.data(), content.size());
  } while (written < 0 && errno == EINTR);
  if (written < 0) return ErrnoError(errno, "write to " + path);
  if (static_cast<std::size_t>(written) != content.size())
    return base::Error(base::Code::kDataLoss, path + " accepted only a part of the data");
  return {};
}

base::Status MakeDirectories(const std::string& path, unsigned mode) {
  if (path.empty()) return ErrnoError(ENOENT, "create a directory without a name");
  std::size_t end = 0;
  while (end != std::string::npos) {
    end = path.find('/', end + 1);
    const std::string folder = path.substr(0, end);
    if (::mkdir(folder.c_str(), mode) == 0) {
      const UniqueFd made(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
      if (!made || ::fchmod(made.get(), mode) != 0)
        return ErrnoError(errno, "set the mode of " + folder);  // the umask may have removed bits
      continue;
    }
    // Any mkdir error (it exists, or is on a read-only file system) is irrelevant if the directory
    // exists.
    const int error = errno;
    struct stat status {};
    if (::stat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) continue;
    return ErrnoError(error == EEXIST ? ENOTDIR : error, "create the directory " + folder);
  }
  return {};
}

base::Result<std::vector<std::string>> ListAll(UniqueFd directory, const std::string& name) {
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(directory.get()), ::closedir);
  if (!stream) return ErrnoError(errno, "list " + name);
  directory.Release();
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(stream.get())) {
    const std::string_view entry_name = entry->d_name;
    if (entry_name != "." && entry_name != "..") names.emplace_back(entry_name);
    errno = 0;
  }
  if (errno != 0) return ErrnoError(errno, "list " + name);
  std::ranges::sort(names);
  return names;
}

base::Result<std::vector<std::string>> ListDirectory(const std::string& path) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return ErrnoError(errno, "list " + path);
  return ListAll(std::move(fd), path);
}

std::vector<FolderFile> ReadFolder(const std::string& folder,
                                   std::span<const std::string_view> suffixes, std::size_t most) {
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const int error = errno;
  if (!fd && error == ENOENT) return {};
  struct stat status {};
  if (!fd && ::lstat(folder.c_str(), &status) == 0 && S_ISLNK(status.st_mode))
    return {{folder, base::Error(base::Code::kFailedPrecondition,
                                 folder + " is a symbolic link; replace it by a directory")}};
  if (!fd) return {{folder, ErrnoError(error, "list " + folder)}};
  const auto names = ListAll(std::move(fd), folder);
  if (!names.ok()) return {{folder, names.error()}};
  std::vector<FolderFile> files;
  for (const std::string& name : *names) {
    const std::string path = folder + "/" + name;
    if (!EndsInOneOf(name, suffixes)) continue;
    if (::lstat(path.c_str(), &status) != 0 || S_ISDIR(status.st_mode))
      continue;  // removed meanwhile, or a folder
    files.push_back({path, ReadFile(path, most)});
  }
  return files;
}

bool IsSame(const std::string& path, const std::string& other) {
  std::error_code error;
  return std::filesystem::equivalent(path, other, error);
}

bool Exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

base::Result<std::string> ReadLink(const std::string& path) {
  std::string target(4096, '\0');
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  if (length < 0) return ErrnoError(errno, "read the link " + path);
  target.resize(static_cast<std::size_t>(length));
  return target;
}

}  // namespace penstock::os
