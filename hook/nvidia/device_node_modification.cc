// The hook disable-device-node-modification: NVIDIA's libraries create device files on their own
// unless the driver's parameters forbid it.
#include <cerrno>

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "hook/hooks.h"
#include "os/core/file.h"

namespace penstock::hook {
namespace {

using os::UniqueFd;

constexpr char kName[] = "params";

// The file with ModifyDeviceFiles set to 0; empty if there is nothing to change.
std::string Forbid(std::string params) {
  constexpr std::string_view line = "ModifyDeviceFiles: 1\n";
  params = params.ends_with('\n') ? params : params + "\n";
  const auto found = params.starts_with(line) ? 0 : params.find("\n" + std::string(line));
  if (found == std::string::npos) return {};
  params[params.find('1', found)] = '0';
  return params;
}

Error Failed(const std::string& doing) { return ErrnoError(errno, doing); }

// An in-memory file system that is not attached to any path, with this one file; read-only for all
// once it is written.
Result<UniqueFd> MakeFile(const std::string& content) {
  const UniqueFd context(::fsopen("tmpfs", FSOPEN_CLOEXEC));
  if (!context) return Failed("create an in-memory file system");
  const std::string size = std::to_string(content.size());
  if (::fsconfig(context.get(), FSCONFIG_SET_STRING, "size", size.c_str(), 0) != 0 ||
      ::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
    return Failed("create an in-memory file system");
  UniqueFd mount(::fsmount(context.get(), FSMOUNT_CLOEXEC,
                           MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC));
  if (!mount) return Failed("create an in-memory file system");
  {
    const UniqueFd file(
        ::openat(mount.get(), kName, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
    if (!file) return Failed("create an in-memory file");
    if (::fchmod(file.get(), 0444) != 0) return Failed("create an in-memory file");
    TRY(os::WriteAll(file.get(), content, "an in-memory file"));
  }
  if (::fsconfig(context.get(), FSCONFIG_SET_FLAG, "ro", nullptr, 0) != 0 ||
      ::fsconfig(context.get(), FSCONFIG_CMD_RECONFIGURE, nullptr, nullptr, 0) != 0)
    return Failed("make the in-memory file system read-only");
  UniqueFd file(::open_tree(mount.get(), kName, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC));
  if (!file) return Failed("expose an in-memory file");
  return file;
}

// Mounts only over a file of the kernel: any other file at that path is the image's.
Result<UniqueFd> FindParams(const os::ConfinedTree& root, const std::string& path) {
  ASSIGN(UniqueFd params, root.Locate(path));
  struct statfs system {};
  if (::fstatfs(params.get(), &system) != 0 || system.f_type != PROC_SUPER_MAGIC)
    return Error(Code::kFailedPrecondition,
                 path + " in " + root.path() + " is not a file of the kernel");
  return params;
}

Status CoverParams(const os::ConfinedTree& root, const std::string& path,
                   const std::string& content) {
  ASSIGN(const UniqueFd target, FindParams(root, path));
  ASSIGN(const UniqueFd file, MakeFile(content));
  if (::move_mount(file.get(), "", target.get(), "",
                   MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) != 0)
    return Failed("mount a file over " + path + " in " + root.path());
  return {};
}

}  // namespace

Status DisableDeviceNodeModification(const os::ConfinedTree& root, const DriverParams& params,
                                     Warnings& warnings) {
  const auto machine = os::ReadFile(params.machine, 1u << 20);
  if (!machine.ok() && machine.error().code() == Code::kNotFound) return {};
  if (!machine.ok()) return machine.error();
  const std::string content = Forbid(*machine);
  return content.empty() ? Status()
                         : warnings.Tolerate(CoverParams(root, params.container, content));
}

}  // namespace penstock::hook
