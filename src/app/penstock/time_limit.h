// How long a run is to last, as people say it to `penstock run --time`. Pure.
#pragma once

#include <string_view>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::app {

/// A duration ("90m", "2h30m"), or as Slurm's --time has it: "MINUTES", "MINUTES:SECONDS", "HOURS:MINUTES:SECONDS", "DAYS-HOURS",
/// "DAYS-HOURS:MINUTES", "DAYS-HOURS:MINUTES:SECONDS". At least a second. kInvalidArgument says what is accepted.
base::Result<base::Duration> ParseTimeLimit(std::string_view text);

}  // namespace penstock::app
