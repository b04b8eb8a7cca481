// CDI specifications of this machine's devices and their driver, from the model and from what is found below the driver root.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/cdi/spec.h"
#include "base/core/result.h"
#include "device/dialect.h"

namespace penstock::node::cdi {

/// Where things lie, as this process sees them and as the host, which is who reads specifications, calls them.
struct Places {
  std::string driver_root = "/";
  std::string host_driver_root;  ///< empty: driver_root
  std::string dev_root = "/";    ///< the folder that holds dev/, or a /dev itself
  std::string host_dev_root;     ///< empty: dev_root
  std::string sysfs_root = "/sys";
  std::string proc_root = "/proc";
  std::vector<std::string> library_folders;        ///< below the driver root, searched before the dialect's
  std::vector<std::string> configuration_folders;  ///< below the driver root, searched before /etc and /usr/share
};

struct Options {
  std::string kind;  ///< "k8s.device-plugin.nvidia.com/gpu"; empty: the dialect's
  std::vector<device::CdiNames> names = {device::CdiNames::kIndex, device::CdiNames::kUuid};
  std::string hook = "/usr/bin/penstock-hook";  ///< as the host calls it; empty: no hooks
  std::string ldconfig;                         ///< what update-ldcache is told of the host's ldconfig; empty: nothing, ours needs none
  std::vector<std::string> disable_hooks;       ///< by name; "all"
  std::vector<std::string> enable_hooks;        ///< those that are off by default
  bool all = true;                              ///< a device "all" with every one of them
  bool additional_gids = true;                  ///< for device files that not everybody may open
};

/// One vendor's devices, those that exist now, and their driver.
struct Input {
  const device::Dialect* dialect = nullptr;
  const device::Driver* driver = nullptr;
  std::vector<const device::Facts*> devices;
};

struct Generated {
  api::cdi::Spec spec;
  std::optional<api::cdi::Spec> narrow;  ///< libraries for 32-bit programs, "nvidia.com/compat32=all"; nothing where there are none
  std::string version;                   ///< of the driver whose files these are
  std::vector<std::string> remarks;      ///< what was looked for and not found, and what follows, each one sentence
  std::vector<std::string> folders;      ///< as this process sees them, sorted: what comes and goes there may change the specification
};

/// Looks at files only, never at a vendor's library: blocks for some milliseconds, for an I/O thread. The same input and files give the
/// same spec, whatever the order of the devices. kNotFound: no device, no driver library below the driver root, or a control device is
/// missing; the message says which and what to do. Devices that are withheld (MIG mode) have names and are not in "all".
base::Result<Generated> Generate(const Input& input, const Places& places, const Options& options);

}  // namespace penstock::node::cdi
