// Parses the time limit of `penstock run --time`. Pure.
#pragma once

#include <string_view>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::app {

/// Accepts a duration ("90m", "2h30m") or a value of Slurm's --time: "MINUTES", "MINUTES:SECONDS",
/// "HOURS:MINUTES:SECONDS", "DAYS-HOURS", "DAYS-HOURS:MINUTES", "DAYS-HOURS:MINUTES:SECONDS". The
/// minimum is one second. kInvalidArgument lists the accepted forms.
base::Result<base::Duration> ParseTimeLimit(std::string_view text);

}  // namespace penstock::app
