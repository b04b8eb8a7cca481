// Which parts of the driver a container gets (NVIDIA_DRIVER_CAPABILITIES), and leaving the others out of a specification's edits. Pure.
#pragma once

#include <set>
#include <string>

#include "api/cdi/spec.h"
#include "base/core/result.h"
#include "hook/runtime/config.h"
#include "hook/runtime/facts.h"

namespace penstock::hook::runtime {

struct Capabilities {
  bool everything = false;  ///< whatever the specification has
  std::set<std::string, std::less<>> names;
  bool narrow = false;  ///< libraries for 32-bit programs, in a specification of their own, were asked for by name
};

/// utility and compute where the container does not say it; all that are supported for images of before NVIDIA_REQUIRE_CUDA; everything for
/// who is given devices by annotation, as engines with CDI of their own do it. kInvalidArgument for what is not supported.
base::Result<Capabilities> ReadCapabilities(const Facts& facts, const Config& config, bool by_annotation);

/// Takes mounts, device files and links of the other capabilities away.
void Restrict(api::cdi::Edits& edits, const Capabilities& capabilities);

/// Takes the hooks of a name ("enable-cuda-compat") away.
void RemoveHooks(api::cdi::Edits& edits, std::string_view name);

}  // namespace penstock::hook::runtime
