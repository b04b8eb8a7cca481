// Reads the hooks file of mig-parted (api/hooks/v1): programs that run before and after a change.
// Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::api::compat {

// When a hook runs.
inline constexpr char kApplyStart[] = "apply-start", kPreApplyMode[] = "pre-apply-mode",
                      kPreApplyConfig[] = "pre-apply-config", kApplyExit[] = "apply-exit";

struct MigHook {
  std::string command;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  std::string folder;  ///< its working directory; empty: the caller's
  bool operator==(const MigHook&) const = default;
};

/// By when they run, in their order.
using MigHooks = std::map<std::string, std::vector<MigHook>>;

/// kInvalidArgument: all problems, each with file:line:column; unlike mig-parted also unknown keys
/// and names, and hooks without a command.
Result<MigHooks> ReadMigHooks(std::string_view text, std::string_view file);

}  // namespace penstock::api::compat
