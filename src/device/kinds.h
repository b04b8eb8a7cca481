// Kinds of evidence that mean the same with every vendor; all others are a vendor's own.
#pragma once

#include <string_view>

namespace penstock::device {

/// Of readings that our own looking makes: a call about the device hangs; it fails in a way that says nothing; the driver as a whole does
/// not answer, and nothing is known of any of its devices.
inline constexpr std::string_view kHang = "hang", kUnreadable = "unreadable", kDriverSilent = "driver-silent";

/// Beginning of the kinds of counters that only a reset of the device, or a reload of its driver, sets back; the code is the counter's
/// value. Standing, in readings of devices whose driver does not say whether something needs doing.
inline constexpr std::string_view kResetCounter = "reset-counter.";

/// In the kernel's log: the vendor's kernel module was loaded just then. Of no device.
inline constexpr std::string_view kDriverLoaded = "driver-loaded";

}  // namespace penstock::device
