#include "os/kernel_modules.h"

#include <cerrno>

#include <fcntl.h>

#include "base/core/strings.h"
#include "os/core/file.h"

// In the C library without a declaration.
extern "C" int delete_module(const char* name, unsigned flags);

namespace penstock::os {

std::optional<KernelModule> FindKernelModule(const std::string& sysfs_root,
                                             const std::string& name) {
  const std::string folder = sysfs_root + "/module/" + name;
  // Built-in modules with parameters have a folder without this file.
  const auto references = ReadFile(folder + "/refcnt", 64);
  if (!references.ok()) return std::nullopt;
  KernelModule module{.name = name, .users = {}, .references = 0};
  const std::string count = references->substr(0, references->find('\n'));
  module.references = static_cast<int>(base::ParseInt(count, 10).value_or(0));
  module.users = ListDirectory(folder + "/holders").value_or(std::vector<std::string>());
  return module;
}

base::Status UnloadKernelModule(const std::string& name) {
  if (::delete_module(name.c_str(), O_NONBLOCK) == 0) return {};
  const int error = errno;
  if (error == ENOENT) return {};
  if (error == EWOULDBLOCK || error == EBUSY)
    return base::Error(base::Code::kUnavailable, "module " + name + " is in use");
  if (error == EPERM)
    return base::Error(base::Code::kPermissionDenied,
                       "unload module " + name +
                           ": this process lacks CAP_SYS_MODULE, or the kernel forbids it "
                           "(kernel.modules_disabled, lockdown); run it privileged");
  return base::ErrnoError(error, "unload module " + name);
}

}  // namespace penstock::os
