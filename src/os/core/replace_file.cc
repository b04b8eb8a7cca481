#include "os/core/replace_file.h"

#include <cerrno>
#include <cstdlib>

#include <fcntl.h>
#include <unistd.h>

#include "os/core/file.h"

namespace penstock::os {
namespace {

std::string Folder(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

void SyncFolder(const std::string& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd) ::fsync(fd.get());
}

Status ReplaceFile(const std::string& path, std::string_view content,
                   const std::function<Status(int file)>& prepare, Durability durability) {
  const std::string folder = Folder(path);
  std::string temporary = folder + "/." + path.substr(path.find_last_of('/') + 1) + ".XXXXXX";
  UniqueFd file(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!file) return ErrnoError(errno, "create a file in " + folder);
  Status done = WriteAll(file.get(), content, path);
  if (done.ok()) done = prepare(file.get());
  if (done.ok() && durability == Durability::kSynced && ::fsync(file.get()) != 0)
    done = ErrnoError(errno, "sync " + path);
  file.Reset();
  if (done.ok() && ::rename(temporary.c_str(), path.c_str()) != 0)
    done = ErrnoError(errno, "replace " + path);
  if (!done.ok()) {
    ::unlink(temporary.c_str());
    return done;
  }
  if (durability == Durability::kSynced) SyncFolder(folder);
  return {};
}

}  // namespace penstock::os
