// Generates specifications beside the one for accelerators that the driver reports (generate.h):
// for the devices that come with them, and for machines that keep that driver elsewhere. Reads
// files only; calls no vendor's library and runs no program.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "device/container.h"
#include "node/cdi/generate.h"

namespace penstock::node::cdi {

/// Blocks for some milliseconds: call it on an I/O thread. Uses only the dialect of `input` and,
/// for classes with the driver's files, the driver. The name of a device is "all", or the names
/// that the class defines. kNotFound: this machine has no such devices; the message says what was
/// searched.
base::Result<Generated> GenerateClass(const device::CdiClass& subject, const Input& input,
                                      const Places& places, const Options& options);

/// The user's overrides of a platform's lists.
struct PlatformOptions {
  std::vector<std::string>
      lists;  ///< read instead of the platform's own, as this process sees them; they must exist
  std::vector<std::string>
      ignored_links;  ///< globs over whole paths, "**/NAME" over names: links that are left out
};

/// Likewise. kInvalidArgument: a list cannot be parsed, with file and line; an incomplete list is
/// never used.
base::Result<Generated> GeneratePlatform(const device::CdiPlatform& subject, const Input& input,
                                         const Places& places, const Options& options,
                                         const PlatformOptions& more = {});

/// Whether this machine is one of a platform, as far as files show.
enum class Fits {
  kNo,
  kYes,
  kByModels,  ///< it is, if all devices that the driver reports are of the platform's models
};
Fits FitsPlatform(const device::CdiPlatform& platform, const Input& input, const Places& places);

/// Whether all of these devices are of the platform's models; false where there is none.
bool AllOfModels(const device::CdiPlatform& platform,
                 std::span<const device::Facts* const> devices);

}  // namespace penstock::node::cdi
