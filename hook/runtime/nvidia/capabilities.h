// Determines which parts of the driver a container gets (NVIDIA_DRIVER_CAPABILITIES), and removes
// the other parts from a specification's edits. Pure functions.
#pragma once

#include <set>
#include <string>

#include "api/cdi/spec.h"
#include "base/core/result.h"
#include "hook/runtime/facts.h"
#include "hook/runtime/nvidia/config.h"

namespace penstock::hook::runtime {

struct Capabilities {
  bool everything = false;  ///< everything in the specification
  std::set<std::string, std::less<>> names;
  bool narrow = false;  ///< libraries for 32-bit programs, which have a specification of their own,
                        ///< were requested by name
};

/// By default utility and compute; all supported capabilities for images older than
/// NVIDIA_REQUIRE_CUDA; everything if the devices are requested by annotation, as engines with CDI
/// support do. kInvalidArgument for a capability that is not supported.
base::Result<Capabilities> ReadCapabilities(const RuntimeFacts& facts, const Config& config,
                                            bool by_annotation);

/// Removes the mounts, device files and links of other capabilities.
void Restrict(api::cdi::CdiEdits& edits, const Capabilities& capabilities);

/// Removes the hooks with a name ("enable-cuda-compat").
void RemoveHooks(api::cdi::CdiEdits& edits, std::string_view name);

}  // namespace penstock::hook::runtime
