// The CDI specifications on this machine, as far as a request needs them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "api/cdi/registry.h"
#include "api/cdi/spec.h"
#include "base/core/result.h"

namespace penstock::hook::runtime {

/// Files of the folders, *.json and *.yaml, that can give one of the devices: those that mention the vendor of one, and those that cannot
/// be read. Later folders come before earlier ones. Blocks.
std::vector<api::cdi::SpecFile> ReadSpecFiles(std::span<const std::string> folders, std::span<const std::string> devices);

/// What every container gets that gets a device of this kind, without any device: NVIDIA_VISIBLE_DEVICES=none. kNotFound where no file is
/// of the kind.
base::Result<api::cdi::Edits> EditsOfKind(std::span<const api::cdi::SpecFile> files, const std::string& kind);

}  // namespace penstock::hook::runtime
