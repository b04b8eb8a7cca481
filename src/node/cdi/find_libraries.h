// Finds a driver's libraries by name, in the folders where distributions install them and in
// those that the driver root's ld.so.cache lists.
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
  std::vector<FoundFile> modules;    ///< sorted by path; programs load them by path, so the
                                     ///< ld.so.cache need not list them
  std::vector<FoundLink> links;      ///< sorted by path
  std::vector<std::string> folders;  ///< of `files`, in containers, sorted
};

struct FoundLibraries {
  std::string version;  ///< of the driver that these libraries belong to
  LibrarySet wide, narrow;
  std::vector<std::string> missing;   ///< patterns that a complete driver has
  std::vector<std::string> remarks;   ///< each one sentence
  std::vector<std::string> searched;  ///< existing folders below the root
};

/// `version` is what the driver reports; empty: what its libraries' names say. The same files give
/// the same answer. kNotFound: there are no libraries; kFailedPrecondition: there are only
/// libraries of another version; the message says what to do. Blocks for some milliseconds.
base::Result<FoundLibraries> FindLibraries(const DriverTree& tree,
                                           const device::ContainerDriver& wanted,
                                           const std::string& version,
                                           const std::vector<std::string>& more_folders);

/// Replaces "{version}" in the pattern.
std::string WithVersion(std::string pattern, const std::string& version);

}  // namespace penstock::node::cdi
