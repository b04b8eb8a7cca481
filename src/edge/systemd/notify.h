// Tells the service manager how far we are, by the NOTIFY_SOCKET protocol (sd_notify(3)). Nothing happens where nobody listens.
#pragma once

#include <string_view>

#include "base/core/clock.h"

namespace penstock::edge::systemd {

/// Sends assignments such as "READY=1\nSTATUS=8 devices". Any thread; never blocks.
void Notify(std::string_view assignments);

/// Within which time systemd wants to hear WATCHDOG=1 again, by WATCHDOG_USEC and WATCHDOG_PID (sd_watchdog_enabled(3)); 0: it does not.
base::Duration WatchdogInterval();

}  // namespace penstock::edge::systemd
