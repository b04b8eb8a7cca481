// Reads the machine's CDI specifications, as far as a request needs them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/cdi/registry.h"
#include "api/cdi/spec.h"
#include "base/core/result.h"

namespace penstock::hook::runtime {

/// The files (*.json and *.yaml) of the folders that can define one of the devices: those that
/// mention the vendor of one, and those that cannot be read. Later folders come before earlier
/// ones. Blocks.
std::vector<api::cdi::SpecFile> ReadSpecFiles(std::span<const std::string> folders,
                                              std::span<const std::string> devices);

/// The edits that apply to every container that gets a device of this kind, without a device's own
/// edits: for NVIDIA_VISIBLE_DEVICES=none. kNotFound if no file is of this kind.
base::Result<api::cdi::CdiEdits> EditsOfKind(std::span<const api::cdi::SpecFile> files,
                                             const std::string& kind);

/// Why a device is not available, with the problems of specifications, which may be the cause, and
/// how to create one under this file name.
base::Error Unresolved(const base::Error& error, const api::cdi::Registry& registry,
                       std::string_view file);

}  // namespace penstock::hook::runtime
