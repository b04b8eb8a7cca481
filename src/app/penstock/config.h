// `penstock config check` and `show`. Needs no agent and changes nothing.
#pragma once

#include <string>

#include "app/penstock/verbs.h"
#include "door/preview.h"

namespace penstock::app {

/// Prints all problems of a file ("-": standard input), or that there are none, and what is not to be had yet: a NodeConfig, a file of
/// NVIDIA's device plugin, or a ConfigMap manifest with such files. With `against`, a machine that penstock-sim knows, also what each would
/// offer there. Files of the device plugin are read strictly, or, where `lenient`, as the agent reads them. Returns the exit status.
int CheckConfig(const Common& common, const std::string& file, const std::string& against, bool lenient);

/// What a configuration would offer, and the labels: a line each. Pure.
std::string ShowPreview(const door::Preview& preview);

/// Prints what the file, the environment and the flags make together. Returns the exit status.
int ShowConfig(const Common& common);

}  // namespace penstock::app
