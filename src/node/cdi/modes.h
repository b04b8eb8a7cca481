// Specifications beside the one of accelerators whose driver tells of them (generate.h): of the devices that come with them, and of
// machines on which that driver lies elsewhere. Files only: no vendor's library is asked, no program is run.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "device/container.h"
#include "node/cdi/generate.h"

namespace penstock::node::cdi {

/// Blocks for some milliseconds, for an I/O thread. Of `input` only the dialect and, for classes with the driver's files, the driver count.
/// The name of a device is "all", or those that the class says. kNotFound: this machine has no such devices; the message says what was
/// looked for.
base::Result<Generated> GenerateClass(const device::CdiClass& subject, const Input& input, const Places& places, const Options& options);

/// What people may say otherwise of a platform's lists.
struct PlatformOptions {
  std::vector<std::string> lists;          ///< read instead of the platform's own, as this process sees them; they must be there
  std::vector<std::string> ignored_links;  ///< globs over whole paths, "**/NAME" over names: links that are left out
};

/// Likewise. kInvalidArgument: a list is not understood, with file and line; nothing is made of half a list.
base::Result<Generated> GeneratePlatform(const device::CdiPlatform& subject, const Input& input, const Places& places,
                                         const Options& options, const PlatformOptions& more = {});

/// Whether this machine is one of a platform, as far as files tell.
enum class Fits {
  kNo,
  kYes,
  kByModels,  ///< it is, if all devices that the driver tells of are of the platform's models
};
Fits FitsPlatform(const device::CdiPlatform& platform, const Input& input, const Places& places);

/// Whether these are of the platform's models, all of them; false where there is none.
bool AllOfModels(const device::CdiPlatform& platform, std::span<const device::Facts* const> devices);

}  // namespace penstock::node::cdi
