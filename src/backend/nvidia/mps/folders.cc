#include "backend/nvidia/mps/folders.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"

namespace penstock::backend::nvidia::mps {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestSocketPath = 107;
constexpr off_t kMaxLogBytes = 4 << 20;

// Creates a folder regardless of the umask. With SELinux, containers may only use files with a
// label for containers; without SELinux the labelling has no effect.
base::Status MakeFolder(const std::string& path, unsigned mode) {
  TRY(os::MakeDirectories(path));
  if (::chmod(path.c_str(), mode) != 0)
    return base::ErrnoError(errno, "set the mode of " + path + "");
  static constexpr std::string_view kLabel = "system_u:object_r:container_file_t:s0";
  if (os::Exists("/sys/fs/selinux/enforce"))
    (void)::setxattr(path.c_str(), "security.selinux", kLabel.data(), kLabel.size() + 1, 0);
  return {};
}

bool IsMountPoint(const std::string& path) {
  struct stat here {
  }, above{};
  return ::stat(path.c_str(), &here) == 0 && ::stat((path + "/..").c_str(), &above) == 0 &&
         here.st_dev != above.st_dev;
}

bool IsInMemory(const std::string& path) {
  struct statfs info {};
  return ::statfs(path.c_str(), &info) == 0 && info.f_type == TMPFS_MAGIC;
}

/// The mount that contains a path, as a line of /proc/self/mountinfo.
std::string MountOf(const std::string& path) {
  std::string best, best_point;
  for (const std::string& line :
       base::Split(os::ReadFile("/proc/self/mountinfo").value_or(""), '\n')) {
    const auto words = base::Split(line, ' ');
    if (words.size() < 6) continue;
    const std::string& point = words[4];
    const bool above = point == "/" || path == point || path.starts_with(point + "/");
    if (above && point.size() >= best_point.size()) best = line, best_point = point;
  }
  return best;
}

/// Whether the machine, and so its containers, see what this process mounts at a path.
bool MachineSeesMounts(const std::string& path, const std::string& proc_root) {
  const auto own = os::ReadLink("/proc/self/ns/mnt"), first = os::ReadLink(proc_root + "/1/ns/mnt");
  if (own.ok() && first.ok() && *own == *first) return true;
  return MountOf(path).find(" shared:") != std::string::npos;
}

}  // namespace

Folders FoldersOf(const std::string& root, const std::string& set) {
  std::string name = set;
  std::replace(name.begin(), name.end(), '/', '-');
  const std::string all = root + "/" + name;
  return {all, all + "/daemon", all + "/pipe", all + "/log", all + "/shm", all + "/started"};
}

base::Status MakeFolders(const Folders& folders) {
  if (const std::string longest = folders.daemon + "/control_privileged";
      longest.size() > kLongestSocketPath)
    return base::Error(base::Code::kInvalidArgument,
                       "the path " + longest + " is too long for a socket (" +
                           std::to_string(kLongestSocketPath) +
                           " bytes): choose a folder with a shorter path for MPS");
  if (const auto made = MakeFolder(folders.all, 0755); !made.ok())
    return base::Error(
        made.error().code(),
        "MPS is configured, but needs a host folder that the agent can write (in Kubernetes the "
        "chart mounts it if the container is privileged and penstock.mps.enabled is not false): " +
            made.error().message());
  TRY(MakeFolder(folders.daemon, 0711));  // servers run as the users of their clients
  TRY(MakeFolder(folders.pipe, 0755));
  TRY(MakeFolder(folders.log, 0755));
  TRY(MakeFolder(folders.shm, 01777));
  std::error_code ignored;
  for (const std::string& folder : {folders.daemon, folders.pipe, folders.shm})
    for (const auto& entry : fs::directory_iterator(folder, ignored))
      fs::remove_all(entry.path(), ignored);
  return {};
}

std::string MountShm(const Folders& folders, const std::string& proc_root) {
  if (IsMountPoint(folders.shm)) return "";
  std::string why;
  if (!MachineSeesMounts(folders.shm, proc_root))
    why = "a mount of the agent at " + folders.all +
          " is not visible outside its container (mountPropagation: Bidirectional)";
  else if (::mount("tmpfs", folders.shm.c_str(), "tmpfs", MS_NOSUID | MS_NODEV,
                   "size=50%,mode=1777") != 0)
    why = base::ErrnoError(errno, "mount a tmpfs at " + folders.shm).message();
  if (why.empty()) return "";
  return "its /dev/shm has no size limit of its own" +
         std::string(IsInMemory(folders.shm) ? "" : " and is on a disk") + ": " + why;
}

base::Status ShareSocket(const Folders& folders) {
  const std::string own = folders.daemon + "/control", shared = folders.pipe + "/control";
  struct stat socket {
  }, there{};
  if (::lstat(own.c_str(), &socket) != 0) return base::ErrnoError(errno, "stat " + own);
  if (!S_ISSOCK(socket.st_mode))
    return base::Error(base::Code::kInvalidArgument, own + " is not a socket");
  if (::lstat(shared.c_str(), &there) == 0 && there.st_dev == socket.st_dev &&
      there.st_ino == socket.st_ino)
    return {};
  std::error_code ignored;
  fs::remove_all(shared, ignored);
  if (::link(own.c_str(), shared.c_str()) != 0)
    return base::ErrnoError(errno, "link " + own + " as " + shared);
  return {};
}

base::Status WriteNote(const Folders& folders, const ServerSpec& spec) {
  return os::WriteFileAtomically(folders.note, WriteSpec(spec) + "\n");
}

std::vector<ServerSpec> ReadNotes(const std::string& root) {
  std::vector<ServerSpec> specs;
  const auto names = os::ListDirectory(root);
  if (!names.ok()) return specs;
  for (const std::string& name : *names) {
    const auto text = os::ReadFile(root + "/" + name + "/started", 64u << 10);
    auto spec = text.ok() ? ReadSpec(*text) : std::nullopt;
    if (spec && FoldersOf(root, spec->set).all == root + "/" + name)
      specs.push_back(*std::move(spec));
  }
  return specs;
}

void RemoveFolders(const Folders& folders) {
  if (IsMountPoint(folders.shm) && ::umount2(folders.shm.c_str(), MNT_DETACH) != 0) return;
  std::error_code ignored;
  fs::remove_all(folders.all, ignored);
}

void TrimLogs(const Folders& folders) {
  for (const char* name : {"/control.log", "/server.log"}) {
    const std::string path = folders.log + name;
    struct stat info {};
    if (::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_size > kMaxLogBytes)
      (void)!::truncate(path.c_str(), 0);
  }
}

}  // namespace penstock::backend::nvidia::mps
