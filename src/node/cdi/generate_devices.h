// A device's own edits: its files, those by which graphics programs know it, and the links that lead to these.
#pragma once

#include <string>
#include <vector>

#include "api/cdi/spec.h"
#include "device/model.h"
#include "node/cdi/dev_files.h"
#include "node/cdi/find_links.h"

namespace penstock::node::cdi {

/// A device file. Where something else lies in its place, since device files cannot be made there, the numbers that a driver told count,
/// and engines make it. kNotFound: it is not there.
base::Result<api::cdi::DeviceNode> NodeOf(const DevFiles& files, const device::DeviceFile& file);

struct DeviceFiles {
  std::vector<api::cdi::DeviceNode> nodes;  ///< sorted by path, one for each
  std::vector<FoundLink> links;             ///< likewise
};

/// Of a partition its own files and its parent's; null: it is none. kNotFound: one of its files is not there; the message says which.
base::Result<DeviceFiles> FilesOf(const device::Facts& device, const device::Facts* parent, const DevFiles& files,
                                  const std::string& sysfs_root);

/// Those of several devices together.
DeviceFiles Merge(DeviceFiles some, const DeviceFiles& more);

}  // namespace penstock::node::cdi
