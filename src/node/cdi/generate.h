// Generates CDI specifications of this machine's devices and their driver, from the model and from
// the files found below the driver root.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/cdi/spec.h"
#include "base/core/result.h"
#include "device/dialect.h"

namespace penstock::node::cdi {

/// The name of the device that stands for all of a kind.
inline constexpr const char* kAll = "all";

/// Where files are, as this process sees them and as the host names them; the host reads the
/// specifications.
struct Places {
  std::string driver_root = "/";
  std::string host_driver_root;  ///< empty: driver_root
  std::string dev_root = "/";    ///< the folder that holds dev/, or a /dev itself
  std::string host_dev_root;     ///< empty: dev_root
  std::string sysfs_root = "/sys";
  std::string proc_root = "/proc";
  std::vector<std::string>
      library_folders;  ///< below the driver root, searched before the dialect's
  std::vector<std::string>
      configuration_folders;  ///< below the driver root, searched before /etc and /usr/share
};

struct Options {
  std::string kind;  ///< "k8s.device-plugin.nvidia.com/gpu"; empty: the dialect's
  std::vector<device::CdiNames> names = {device::CdiNames::kIndex, device::CdiNames::kUuid};
  std::string hook = "/usr/bin/penstock-hook";  ///< its path on the host; empty: no hooks
  std::string ldconfig;  ///< the host's ldconfig, passed to update-ldcache; empty: not passed,
                         ///< Penstock's hook needs none
  std::vector<std::string> disable_hooks;  ///< by name; "all"
  std::vector<std::string> enable_hooks;   ///< hooks that are off by default
  bool all = true;                         ///< add a device "all" with every device
  bool additional_gids = true;             ///< for device files that not all users may open
};

/// One vendor's devices, those that exist now, and their driver.
struct Input {
  const device::Dialect* dialect = nullptr;
  const device::Driver* driver = nullptr;
  std::vector<const device::Facts*> devices;
};

struct Generated {
  api::cdi::Spec spec;
  std::optional<api::cdi::Spec>
      narrow;  ///< libraries for 32-bit programs, "nvidia.com/compat32=all"; nothing where there
               ///< are none
  std::string version;  ///< of the driver that these files belong to
  std::vector<std::string>
      remarks;  ///< what was searched and not found, and the consequence, each one sentence
  std::vector<std::string> folders;  ///< as this process sees them, sorted: files that appear or
                                     ///< disappear there may change the specification
};

/// Reads files only, never a vendor's library. Blocks for some milliseconds: call it on an I/O
/// thread. The same input and files give the same spec, whatever the order of the devices.
/// kNotFound: no device, no driver library below the driver root, or a control device is missing;
/// the message says which and what to do. Withheld devices (MIG mode) have names and are not in
/// "all".
base::Result<Generated> Generate(const Input& input, const Places& places, const Options& options);

}  // namespace penstock::node::cdi
