// Resolves a path one name at a time, since the kernel has no flag that checks owners.
#include "os/trusted_path.h"

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/core/strings.h"

namespace penstock::os {
namespace {

constexpr int kMaxLinks = 40;  // as in the kernel (path_resolution(7))

class Walk {
 public:
  explicit Walk(const std::string& root) : root_(root == "/" ? "" : root) {}

  base::Result<TrustedPath> To(const std::string& path) {
    UniqueFd root(::open((root_ + "/").c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!root) return ErrnoError(errno, "open the root " + root_);
    TRY(Take(std::move(root), ""));
    Add(path);
    while (!rest_.empty()) {
      const std::string name = std::move(rest_.back());
      rest_.pop_back();
      TRY(Step(name));
    }
    Place& last = places_.back();
    return TrustedPath{std::move(last.fd), Below(), last.status};
  }

 private:
  struct Place {
    UniqueFd fd;
    std::string name;  ///< its name in the previous folder; "" for the root
    struct stat status {};
  };

  /// The path at which the walk currently is.
  std::string Below() const {
    std::string path;
    for (std::size_t i = 1; i < places_.size(); ++i) path += "/" + places_[i].name;
    return path.empty() ? "/" : path;
  }

  /// Adds names to walk; the next name is last in rest_.
  void Add(const std::string& path) {
    auto names = base::Split(path, '/');
    std::ranges::reverse(names);
    rest_.insert(rest_.end(), names.begin(), names.end());
  }

  base::Status Take(UniqueFd fd, const std::string& name) {
    Place place{std::move(fd), name};
    const int raw = place.fd.get();
    places_.push_back(std::move(place));
    if (::fstat(raw, &places_.back().status) != 0)
      return ErrnoError(errno, "stat " + root_ + Below());
    return CheckOwner(places_.back().status, root_ + Below());
  }

  base::Status Step(const std::string& name) {
    if (name.empty() || name == ".") return {};
    if (name == "..") {
      if (places_.size() > 1) places_.pop_back();
      return {};
    }
    UniqueFd fd(::openat(places_.back().fd.get(), name.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!fd)
      return ErrnoError(errno, "open " + root_ + (places_.size() > 1 ? Below() : "") + "/" + name);
    TRY(Take(std::move(fd), name));
    return S_ISLNK(places_.back().status.st_mode) ? Follow() : base::Status();
  }

  /// The last place is a link: replaces it with the link's target.
  base::Status Follow() {
    const std::string path = root_ + Below();
    const UniqueFd link = std::move(places_.back().fd);
    places_.pop_back();
    struct statfs system {};
    if (::fstatfs(link.get(), &system) != 0) return ErrnoError(errno, "stat " + path);
    if (system.f_type == PROC_SUPER_MAGIC)
      return Error(Code::kPermissionDenied, path + " is a link of /proc, which is not a path");
    if (++links_ > kMaxLinks) return ErrnoError(ELOOP, "open " + path);
    std::string target(4096, '\0');
    const ssize_t length = ::readlinkat(link.get(), "", target.data(), target.size());
    if (length < 0) return ErrnoError(errno, "read the link " + path);
    target.resize(static_cast<std::size_t>(length));
    if (target.starts_with('/')) places_.resize(1);
    Add(target);
    return {};
  }

  const std::string root_;
  std::vector<Place> places_;      // from the root to the current place
  std::vector<std::string> rest_;  // remaining names, the next one last
  int links_ = 0;
};

}  // namespace

base::Status CheckOwner(const struct stat& status, const std::string& what) {
  // In a user namespace without the machine's root, root's files appear as owned by the owner of
  // the root folder.
  struct stat root {};
  const bool trusted = status.st_uid == 0 || status.st_uid == ::geteuid() ||
                       (::stat("/", &root) == 0 && status.st_uid == root.st_uid);
  if (!trusted)
    return Error(Code::kPermissionDenied,
                 what + " belongs to user " + std::to_string(status.st_uid));
  if (S_ISLNK(status.st_mode) || S_ISSOCK(status.st_mode)) return {};
  if (S_ISDIR(status.st_mode) && (status.st_mode & S_ISVTX) != 0) return {};
  if ((status.st_mode & S_IWOTH) != 0)
    return Error(Code::kPermissionDenied, what + " is writable by everyone");
  if ((status.st_mode & S_IWGRP) != 0)
    return Error(Code::kPermissionDenied, what + " is writable by its group");
  return {};
}

base::Result<TrustedPath> OpenTrusted(const std::string& root, const std::string& path) {
  if (!path.starts_with('/'))
    return Error(Code::kInvalidArgument, "\"" + path + "\" must be an absolute path");
  return Walk(root).To(path);
}

}  // namespace penstock::os
