// Tells the service manager how far we are, by the NOTIFY_SOCKET protocol (sd_notify(3)). Nothing happens where nobody listens.
#pragma once

#include <string_view>

namespace penstock::edge::systemd {

/// Sends assignments such as "READY=1\nSTATUS=8 devices". Any thread; never blocks.
void Notify(std::string_view assignments);

}  // namespace penstock::edge::systemd
