// Kinds of evidence with the same meaning for every vendor; all others are vendor-specific.
#pragma once

#include <string_view>

namespace penstock::device {

/// Evidence from the agent's own polling: a call about the device hangs; a call fails for an
/// unclear reason; the whole driver does not answer, so that nothing is known of its devices.
inline constexpr std::string_view kHang = "hang", kUnreadable = "unreadable",
                                  kDriverSilent = "driver-silent";

/// Prefix of the kinds of counters that only a reset of the device or a reload of its driver sets
/// back; the code is the counter's value. Standing evidence, in readings of devices whose driver
/// does not report whether recovery is needed.
inline constexpr std::string_view kResetCounter = "reset-counter.";

/// From the kernel's log: the vendor's kernel module was just loaded. Concerns no single device.
inline constexpr std::string_view kDriverLoaded = "driver-loaded";

/// An event: facts of the device may have changed; describe it again. Says nothing about its
/// health.
inline constexpr std::string_view kFactsChanged = "facts-changed";

}  // namespace penstock::device
