// Finds the CDI specification files of this machine and checks that what they name exists.
#pragma once

#include <string>
#include <vector>

#include "api/cdi/registry.h"
#include "api/cdi/spec.h"

namespace penstock::app {

/// The folders that engines read: api::cdi::kFolders.
std::vector<std::string> DefaultSpecFolders();

/// Reads all files that engines read in these folders; later folders have higher priority. Blocks.
std::vector<api::cdi::SpecFile> ReadSpecFolders(const std::vector<std::string>& folders);

/// Returns the causes on this machine that keep a container from starting with one of the devices,
/// one sentence each: device files, mounts and hook programs that are absent or of another type.
/// Blocks.
std::vector<std::string> Missing(const api::cdi::Spec& spec);

}  // namespace penstock::app
