// A simulated machine looked at as the agent would, for `penstock config check --against`. Nothing is left behind.
#pragma once

#include <functional>
#include <string>

#include "api/node_config.h"
#include "base/core/result.h"
#include "door/preview.h"
#include "node/sample/samples.h"

namespace penstock::app {

/// Starts the machine (a name that penstock-sim knows, or a machine file) in a folder of its own, finds its devices through the worker,
/// asks each once what it measures, calls `use` with what was found, and takes the machine away again. Paths of the configuration that say
/// where the driver, devices and sysfs are stand for the simulated ones. Blocks.
base::Status LookAt(const std::string& machine,
                    const std::function<void(const door::PreviewNode&, const node::sample::Snapshot& samples)>& use);

}  // namespace penstock::app
