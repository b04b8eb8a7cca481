// `penstock mig apply` and `restore`: run hooks, and have the agent divide the GPUs, or, where none
// runs, divide them.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "api/config/layouts.h"
#include "app/penstock/common/verbs.h"
#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::app {

struct ApplyRequest {
  api::Layout layout;
  bool mode_only = false, skip_reset = false;
  std::optional<base::Duration> wait = {};  ///< for holders; nothing: not at all
  std::string hooks_file = {};              ///< empty: none
  std::map<std::string, std::string> hook_environment = {};
};

/// Prints progress on standard error, and returns how each GPU ended. Errors are those of
/// node::change::Divisions::Apply, of DivideDirectly and of hooks. A signal ends the hook that
/// runs, and the division after the GPU that is being divided; an agent goes on. Then the hooks of
/// apply-exit run, and the signal ends this program (Interruption).
Result<Shown> ApplyMigLayout(const Common& common, const ApplyRequest& request);

}  // namespace penstock::app
