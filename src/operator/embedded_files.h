// The objects that are part of the program: the definitions of our resources, and the manifest of
// the agents (deploy/manifests), from which its DaemonSet is taken.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/core/result.h"

namespace penstock::cluster {

struct EmbeddedFile {
  std::string_view name;  ///< "penstock.io_nodestates.yaml"
  std::string_view content;
};

std::span<const EmbeddedFile> EmbeddedFiles();
std::string_view EmbeddedFilesHash();

/// All objects of a kind in the embedded files, in the order of the files, each once. kInternal: a
/// file is not YAML, which a test excludes.
base::Result<std::vector<nlohmann::json>> EmbeddedObjects(std::string_view kind);

}  // namespace penstock::cluster
