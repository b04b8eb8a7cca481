// Which device files the holders of this node's devices open, and what stands at their paths. Opens
// no device.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "device/dialect.h"
#include "node/inventory/inventory.h"

namespace penstock::node::validate {

/// A device file that must exist.
struct WantedFile {
  std::string path;  ///< "/dev/nvidia0"
  std::uint32_t major = 0, minor = 0;
  bool numbered = false;      ///< the driver reports its numbers
  std::string of;             ///< the device that needs it: "device 3"; empty: all of them
  std::string remedy;         ///< a command that creates it; empty: none is known
  std::string dev_root;       ///< below which it is, as this process sees it; empty: as configured
  bool of_container = false;  ///< a driver container put that root there, and may replace it
  bool operator==(const WantedFile&) const = default;
};

/// What stands at a path.
struct StandingFile {
  enum class Kind { kMissing, kOther, kDevice };
  Kind kind = Kind::kMissing;
  std::uint32_t major = 0, minor = 0;  ///< of a device
  bool operator==(const StandingFile&) const = default;
};
using StandingFiles = std::map<std::string, StandingFile>;  ///< by path

/// The files of all drivers with present devices, then those of each present device, without
/// graphics files, which a headless machine may lack. Pure.
std::vector<WantedFile> WantedFiles(const inventory::Snapshot& inventory,
                                    const device::DialectOf& dialect_of);

/// Looks at the files below their dev roots (each contains dev/, or is a /dev itself), `dev_root`
/// being the configured one. While a driver container's root is away, because it is being replaced,
/// its files stand as they did `before`; the inventory says when they have gone. Blocks for some
/// system calls.
StandingFiles LookAt(const std::string& dev_root, const std::vector<WantedFile>& wanted,
                     const StandingFiles& before);

/// Why the files are not usable as device files, one sentence for each; empty: they are. Pure.
struct FileProblem {
  std::string reason, remedy;
};
std::vector<FileProblem> ProblemsOf(const std::vector<WantedFile>& wanted,
                                    const StandingFiles& standing);

}  // namespace penstock::node::validate
