// Specification files as they lie on this machine, and whether what they name is there.
#pragma once

#include <string>
#include <vector>

#include "api/cdi/registry.h"
#include "api/cdi/spec.h"

namespace penstock::app {

/// The folders in which engines look: api::cdi::kFolders.
std::vector<std::string> DefaultSpecFolders();

/// All files that engines read there; later folders have the higher priority. Blocks.
std::vector<api::cdi::SpecFile> ReadSpecFolders(const std::vector<std::string>& folders);

/// What on this machine keeps a container from starting with one of the devices, each one sentence: device files, mounts and hooks'
/// programs that are not there or are something else. Blocks.
std::vector<std::string> Missing(const api::cdi::Spec& spec);

}  // namespace penstock::app
