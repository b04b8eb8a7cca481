// What a vendor's driver consists of, and where driver containers keep theirs: by what a driver is
// found, and what a program has to know that takes it away. Pure data.
#pragma once

#include <string>
#include <vector>

namespace penstock::device {

struct KernelDriver {
  std::string module;  ///< is loaded exactly as long as the driver is: "nvidia"
  /// The other modules of the vendor that use it or belong to it; also those whose names begin with
  /// `module` and an underscore, as far as they use it.
  std::vector<std::string> modules;
  std::vector<std::string> rivals;        ///< modules that keep the devices from the driver
  std::vector<std::string> device_files;  ///< the beginnings of its names in /dev
  std::string control;                    ///< the one in /dev that a loaded driver always has
  std::vector<std::string> libraries;     ///< a root with one of these files has a driver

  // Of driver containers, below the host's /run.
  std::string container_root;            ///< where it mounts its files: "nvidia/driver"
  std::string digest_file;               ///< of what is installed
  std::string pid_file;                  ///< of the container's first process
  std::vector<std::string> ready_files;  ///< exist as long as its driver is usable
};

}  // namespace penstock::device
