// `penstock mig apply`: has the agent divide the GPUs.
#pragma once

#include <optional>

#include "api/config/layouts.h"
#include "app/penstock/common/verbs.h"
#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::app {

struct ApplyRequest {
  api::Layout layout;
  bool mode_only = false, skip_reset = false;
  std::optional<base::Duration> wait;  ///< for holders; nothing: not at all
};

/// Prints progress on standard error, and returns how each GPU ended. Errors are those of
/// node::change::Divisions::Apply, and kUnavailable: no agent responds.
Result<Shown> ApplyMigLayout(const Common& common, const ApplyRequest& request);

}  // namespace penstock::app
