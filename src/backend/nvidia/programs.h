// Finds the driver's command line programs (nvidia-smi, nvidia-cuda-mps-control) and what they need
// to run. Runs none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::backend::nvidia {

/// A program of the driver, ready for os::Spawn or os::Command.
struct Program {
  std::string path;    ///< path of the program, links resolved, as this process sees it
  std::string inside;  ///< the same path for processes whose "/" is the driver root
  std::vector<std::string> command;  ///< argv to which arguments are added; more than the path if a
                                     ///< root has its own loader
  std::vector<std::string> environment;  ///< complete environment, "NAME=value": this process's
                                         ///< without CUDA_* and LD_*, plus the driver's libraries
};

/// Finds a program below the driver root: in /usr/bin, /bin, /usr/local/bin, /usr/local/nvidia/bin,
/// /opt/bin and the corresponding sbin folders; for the root "/", first along PATH. Its libraries
/// come from the same root. kNotFound names the program and says what to do. Any thread; reads the
/// disk.
base::Result<Program> FindProgram(const std::string& driver_root, std::string_view name);

/// The folders of FindProgram as a PATH, for programs that start others by name. `inside`: as
/// processes see them whose "/" is the driver root.
std::string ProgramFolders(const std::string& driver_root, bool inside);

/// The dynamic loader of a driver root, as this process sees it; empty for the root "/" and for a
/// root without one (it holds only the driver's files).
std::string OwnLoader(const std::string& driver_root);

}  // namespace penstock::backend::nvidia
