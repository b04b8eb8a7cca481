// What of a node concerns its driver: modules, files of driver containers, users of device files.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "base/core/result.h"
#include "device/kernel_driver.h"
#include "node/driver/preparation.h"

namespace penstock::app {

/// Where this process sees the parts of the node.
struct DriverMachine {
  std::string host_root = "/";  ///< the node's root: "/host" in a pod
  std::string run_root = "/run";
  std::string sysfs_root = "/sys";
  std::string proc_root = "/proc";
  std::string agent_dir;  ///< the agent's run directory, in the node's root
};

/// A process that has a device file open or mapped.
struct DriverUser {
  pid_t pid = 0;
  std::string program;  ///< without arguments, which may be secret; printable, at most 40 bytes
  std::string user;
  std::string pod;  ///< "namespace/name"; empty: none, or not known
  std::string file;
};

/// Reads sysfs and the files of driver containers. Blocks.
node::driver::Modules ReadDriverModules(const DriverMachine& machine,
                                        const device::KernelDriver& driver);
node::driver::DriverState ReadDriverState(const DriverMachine& machine,
                                          const device::KernelDriver& driver);

/// Reads all processes. Blocks, also for some seconds if processes delay readers.
std::vector<DriverUser> FindDriverUsers(const DriverMachine& machine,
                                        const device::KernelDriver& driver);

/// "process 4711 "python" of user 1000 in pod ml/train-0 (/dev/nvidia0), ..."; of many, some.
std::string InWords(const std::vector<DriverUser>& users);

/// Where the files of a driver container are.
std::string ContainerRootOf(const DriverMachine& machine, const device::KernelDriver& driver);

/// Removes files of driver containers, named as in KernelDriver. kPermissionDenied: another user
/// can redirect the path.
base::Status RemoveDriverFiles(const DriverMachine& machine, const std::vector<std::string>& files);

}  // namespace penstock::app
