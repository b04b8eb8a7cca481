// The driver's own command line programs (nvidia-smi, nvidia-cuda-mps-control): where they lie and what they need to run. Runs none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::vendor::nvidia {

/// A program of the driver, ready for os::Spawn or os::Command.
struct Program {
  std::string path;                      ///< of the program itself, links resolved, as this process sees it
  std::string inside;                    ///< the same as processes call it whose "/" is the driver root
  std::vector<std::string> command;      ///< argv to which arguments are added; more than the path where a root brings its own loader
  std::vector<std::string> environment;  ///< whole environment, "NAME=value": ours without CUDA_* and LD_*, with the driver's libraries
};

/// A program below the driver root: in /usr/bin, /bin, /usr/local/bin, /usr/local/nvidia/bin, /opt/bin and the folders for root beside
/// these, and for the root "/" first along PATH. Its libraries are those of the same root. kNotFound names the program and says what to do.
/// Any thread; looks at the disk.
base::Result<Program> FindProgram(const std::string& driver_root, std::string_view name);

/// The folders of FindProgram as PATH has them, for programs that start others by name; `inside`: as processes call them whose "/" is the
/// driver root.
std::string ProgramFolders(const std::string& driver_root, bool inside);

/// The dynamic loader that a driver root brings, as this process sees it; empty where it brings none (it holds the driver's files only) and
/// for the root "/".
std::string OwnLoader(const std::string& driver_root);

}  // namespace penstock::vendor::nvidia
