// Parses the times of `penstock usage`. Pure.
#pragma once

#include <string_view>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::app {

/// Accepts "2026-11-21", "2026-11-21T03:42:00Z" or with an offset like "+01:00" (RFC 3339; a day
/// begins at midnight UTC), or a time before `now`: "90m", "24h", "7d", "2w". kInvalidArgument
/// lists the accepted forms.
base::Result<base::WallTime> ParseWhen(std::string_view text, base::WallTime now);

}  // namespace penstock::app
