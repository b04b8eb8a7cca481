// Translates the configuration of AMD's Device Config Manager (DCM, config.json) into layouts.
// Pure.
//
// As DCM, it examines a profile only when that is used: DCM's own example has profiles that are
// wrong beside others that are in use. What is wrong with the file itself is wrong with all.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/config/layouts.h"
#include "base/core/result.h"

namespace penstock::api::compat {

/// A profile that cannot be applied.
struct WrongProfile {
  std::string text;           ///< all problems, each with file:line:column, key, value and remedy
  bool compute_mode = false;  ///< one is a value of computePartition that is none
  bool memory_mode = false;   ///< or of memoryPartition
};

struct DcmProfiles {
  Layouts layouts;                            ///< of the profiles that are in order
  std::map<std::string, WrongProfile> wrong;  ///< the others, by name
  /// Services of the host that are stopped while GPUs change, in that order.
  std::vector<std::string> services;
  std::vector<std::string> remarks;  ///< what is read and has no effect
};

/// The modes that profiles set, in LayoutRule::modes.
inline constexpr char kComputeMode[] = "compute-partition", kMemoryMode[] = "memory-partition";

/// kInvalidArgument: it is no JSON, has a name twice, or lacks gpu-config-profiles.
Result<DcmProfiles> TranslateDcmProfiles(std::string_view text, std::string_view file);

}  // namespace penstock::api::compat
