// What specifications leave out of device files and the host knows.
#pragma once

#include <vector>

#include "api/cdi/spec.h"
#include "base/core/result.h"

namespace penstock::hook::runtime {

/// Fills type, major and minor in by lstat of the file on the host, so that a link is none (container-device-interface,
/// pkg/cdi/container-edits_unix.go). kNotFound, or another by errno, names the file and what to do; kFailedPrecondition where it is no
/// device.
base::Status Complete(std::vector<api::cdi::DeviceNode>& nodes);

}  // namespace penstock::hook::runtime
