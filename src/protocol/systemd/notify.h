// Reports the agent's state to the service manager by the NOTIFY_SOCKET protocol (sd_notify(3)).
// Does nothing if no service manager listens.
#pragma once

#include <string_view>

#include "base/core/clock.h"

namespace penstock::protocol::systemd {

/// Sends assignments such as "READY=1\nSTATUS=8 devices". Any thread; never blocks.
void Notify(std::string_view assignments);

/// Returns the interval in which systemd expects WATCHDOG=1, by WATCHDOG_USEC and WATCHDOG_PID
/// (sd_watchdog_enabled(3)); 0: systemd expects none.
base::Duration WatchdogInterval();

}  // namespace penstock::protocol::systemd
