#include "hook/runtime/host_devices.h"

#include <cerrno>
#include <string>

#include <sys/stat.h>
#include <sys/sysmacros.h>

namespace penstock::hook::runtime {
namespace {

/// "b", "c", "p"; empty if it is not a device.
std::string TypeOf(mode_t mode) {
  if (S_ISBLK(mode)) return "b";
  if (S_ISCHR(mode)) return "c";
  return S_ISFIFO(mode) ? "p" : "";
}

Status CompleteOne(api::cdi::DeviceNode& node) {
  const bool numbered = node.type == "p" || node.major.value_or(0) != 0;
  if (!node.type.empty() && numbered) return {};
  const std::string& path = node.host_path.empty() ? node.path : node.host_path;
  constexpr const char* kRemedy =
      "; the CDI specification is out of date for this machine, regenerate it (penstock cdi "
      "generate)";
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) {
    const Error error = base::ErrnoError(errno, "inspect the device file " + path);
    return Error(error.code(), error.message() + kRemedy);
  }
  const std::string type = TypeOf(status.st_mode);
  if (type.empty() || (!node.type.empty() && node.type != type))
    return Error(
        Code::kFailedPrecondition,
        path + (type.empty() ? " is not a device file" : " is a device file of another type") +
            kRemedy);
  node.type = type;
  if (type != "p" && !numbered) {
    node.major = ::major(status.st_rdev);
    node.minor = ::minor(status.st_rdev);
  }
  return {};
}

}  // namespace

Status Complete(std::vector<api::cdi::DeviceNode>& nodes) {
  for (api::cdi::DeviceNode& node : nodes) TRY(CompleteOne(node));
  return {};
}

}  // namespace penstock::hook::runtime
