// Searches PATH with access(2) and stat(2).
#include "hook/runtime/low_level.h"

#include <optional>

#include <sys/stat.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"

namespace penstock::hook::runtime {
namespace {

constexpr std::string_view kUsualFolders =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

bool IsProgram(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) &&
         ::access(path.c_str(), X_OK) == 0;
}

std::optional<std::string> Locate(const std::string& name, std::string_view folders) {
  if (name.find('/') != std::string::npos)
    return name.front() == '/' && IsProgram(name) ? std::optional(name) : std::nullopt;
  for (const std::string& folder : base::Split(folders, ':')) {
    if (folder.empty() || folder.front() != '/') continue;
    std::string candidate = folder + "/" + name;
    if (IsProgram(candidate)) return candidate;
  }
  return std::nullopt;
}

/// Also true for a copy under another name; contents are compared only if the sizes are equal.
bool IsSame(const std::string& path, const std::string& self) {
  struct stat one {
  }, other{};
  if (::stat(path.c_str(), &one) != 0 || ::stat(self.c_str(), &other) != 0 ||
      one.st_size != other.st_size)
    return false;
  if (one.st_dev == other.st_dev && one.st_ino == other.st_ino) return true;
  const auto text = os::ReadFile(path), own = os::ReadFile(self);
  return text.ok() && own.ok() && *text == *own;
}

}  // namespace

Result<std::string> FindLowLevelRuntime(std::span<const std::string> candidates,
                                        std::string_view path, const std::string& self) {
  std::string folders(path);
  folders.append(folders.empty() ? "" : ":").append(kUsualFolders);
  for (const std::string& name : candidates) {
    auto found = name.empty() ? std::nullopt : Locate(name, folders);
    if (!found) continue;
    if (IsSame(*found, self))
      return Error(Code::kFailedPrecondition,
                   "the low-level runtime \"" + name + "\" is " + *found +
                       ", which is this program itself; set nvidia-container-runtime.runtimes in "
                       "config.toml to the path of runc or crun");
    return *std::move(found);
  }
  return Error(Code::kNotFound, "none of the low-level runtimes " + base::Join(candidates, ", ") +
                                    " is in PATH; install runc or crun, or set "
                                    "nvidia-container-runtime.runtimes in config.toml to its path");
}

}  // namespace penstock::hook::runtime
