// Completes the device files of CDI specifications with facts from the host.
#pragma once

#include <vector>

#include "api/cdi/spec.h"
#include "base/core/result.h"

namespace penstock::hook::runtime {

/// Fills in type, major and minor from lstat of the file on the host, so that links are not
/// followed (container-device-interface, pkg/cdi/container-edits_unix.go). kNotFound, or another
/// error by errno, names the file and what to do; kFailedPrecondition if the file is not a device.
base::Status Complete(std::vector<api::cdi::DeviceNode>& nodes);

}  // namespace penstock::hook::runtime
