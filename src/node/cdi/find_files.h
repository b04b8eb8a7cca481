// Finds a driver's files other than libraries: programs, configuration, firmware, sockets.
#pragma once

#include <string>
#include <vector>

#include "device/container.h"
#include "node/cdi/find_links.h"
#include "node/cdi/find_tree.h"
#include "node/cdi/generate.h"

namespace penstock::node::cdi {

struct FoundFiles {
  std::vector<FoundFile> files;       ///< sorted by path, one for each path
  std::vector<FoundFile> sockets;     ///< likewise; also folders of sockets
  std::vector<std::string> missing;   ///< patterns that a complete driver has
  std::vector<std::string> remarks;   ///< each one sentence
  std::vector<std::string> searched;  ///< folders below the root in which sockets appear and
                                      ///< disappear
};

/// The same files give the same answer. Blocks for some milliseconds.
FoundFiles FindFiles(const DriverTree& tree, const device::ContainerDriver& wanted,
                     const std::string& version, const Places& places);

}  // namespace penstock::node::cdi
