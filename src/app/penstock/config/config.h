// `penstock config check` and `show`. They work without an agent and change nothing.
#pragma once

#include <string>

#include "app/penstock/common/verbs.h"
#include "view/preview.h"

namespace penstock::app {

/// Prints all problems of a file ("-": standard input) or that it has none, and settings that are
/// not supported yet. The file is a NodeConfig, a file of NVIDIA's device plugin, or a ConfigMap
/// manifest with such files. With `against`, a machine that penstock-sim knows, also prints what
/// each configuration would offer there. Reads files of the device plugin strictly, or, with
/// `lenient`, as the agent reads them. Returns the exit status.
int CheckConfig(const Common& common, const std::string& file, const std::string& against,
                bool lenient);

/// Formats what a configuration would offer, and the labels, one per line. Pure.
std::string ShowPreview(const view::Preview& preview);

/// Prints the configuration that file, environment and flags result in. Returns the exit status.
int ShowConfig(const Common& common);

}  // namespace penstock::app
