// Generates a device's own edits: its device files, the DRM files that graphics programs use, and
// the links to those.
#pragma once

#include <string>
#include <vector>

#include "api/cdi/spec.h"
#include "device/model.h"
#include "node/cdi/dev_files.h"
#include "node/cdi/find_links.h"

namespace penstock::node::cdi {

/// Returns a device file. Where another file is in its place, because device files cannot be
/// created there, the numbers that the driver reports are used, and engines create the device file.
/// kNotFound: it does not exist.
base::Result<api::cdi::DeviceNode> NodeOf(const DevFiles& files, const device::DeviceFile& file);

struct DeviceFiles {
  std::vector<api::cdi::DeviceNode> nodes;  ///< sorted by path, one for each path
  std::vector<FoundLink> links;             ///< likewise
};

/// The files of a device, and, unless it is a partition, the DRM files of its PCI function.
/// kNotFound: one of its files does not exist; the message says which.
base::Result<DeviceFiles> FilesOf(const device::Facts& device, const DevFiles& files,
                                  const std::string& sysfs_root);

/// Combines the files of several devices.
DeviceFiles Merge(DeviceFiles some, const DeviceFiles& more);

}  // namespace penstock::node::cdi
