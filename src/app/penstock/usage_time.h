// Times as people say them to `penstock usage`. Pure.
#pragma once

#include <string_view>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::app {

/// "2026-11-21", "2026-11-21T03:42:00Z" or with an offset as "+01:00" (RFC 3339; a day begins at midnight UTC), or how long before `now`:
/// "90m", "24h", "7d", "2w". kInvalidArgument says what is accepted.
base::Result<base::WallTime> ParseWhen(std::string_view text, base::WallTime now);

}  // namespace penstock::app
