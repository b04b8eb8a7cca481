// A driver's libraries: found by name in the folders where distributions have them and where the driver root's ld.so.cache says.
#pragma once

#include <string>
#include <vector>

#include "device/container.h"
#include "node/cdi/find_links.h"
#include "node/cdi/find_tree.h"

namespace penstock::node::cdi {

/// Libraries for programs of one width.
struct LibrarySet {
  std::vector<FoundFile> files;      ///< sorted by path
  std::vector<FoundFile> modules;    ///< sorted by path; loaded by path, so that no cache needs them
  std::vector<FoundLink> links;      ///< sorted by path
  std::vector<std::string> folders;  ///< of `files`, in containers, sorted
};

struct FoundLibraries {
  std::string version;  ///< of the driver whose libraries these are
  LibrarySet wide, narrow;
  std::vector<std::string> missing;   ///< patterns that a complete driver has
  std::vector<std::string> remarks;   ///< each one sentence
  std::vector<std::string> searched;  ///< folders below the root that there are
};

/// `version` is what the driver says of itself; empty: what its libraries' names say. The same files give the same answer. kNotFound: there
/// are no libraries; kFailedPrecondition: there are those of another version alone; the message says what to do. Blocks for some
/// milliseconds.
base::Result<FoundLibraries> FindLibraries(const DriverTree& tree, const device::ContainerDriver& wanted, const std::string& version,
                                           const std::vector<std::string>& more_folders);

/// "{version}" in it replaced.
std::string WithVersion(std::string pattern, const std::string& version);

}  // namespace penstock::node::cdi
