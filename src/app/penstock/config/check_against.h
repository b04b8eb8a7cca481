// Reads a simulated machine as the agent would, for `penstock config check --against`, and removes
// it afterwards.
#pragma once

#include <functional>
#include <string>

#include "api/config/node_config.h"
#include "base/core/result.h"
#include "node/sample/samples.h"
#include "view/preview.h"

namespace penstock::app {

/// Starts the machine (a name that penstock-sim knows, or a machine file) in a folder of its own,
/// finds its devices through the worker, samples each device once, calls `use` with the result, and
/// removes the machine. The driver, device and sysfs roots are the simulated machine's, whatever a
/// configuration says. Blocks.
base::Status Simulate(const std::string& machine,
                      const std::function<void(const view::PreviewNode&,
                                               const node::sample::Snapshot& samples)>& use);

}  // namespace penstock::app
