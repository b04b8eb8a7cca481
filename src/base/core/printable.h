// Text of other people's making, as a terminal may be given it.
#pragma once

#include <string>
#include <string_view>

namespace penstock::base {

/// Whether it is UTF-8 without characters that a terminal acts on: control characters (C0, DEL, and C1, U+0080 to U+009F, which many take
/// for escape sequences), and those that turn the direction of what stands around them (U+202A to U+202E, U+2066 to U+2069).
bool IsPrintable(std::string_view text);

/// The text with a '?' for each such character, and for each byte that is no UTF-8.
std::string Printable(std::string_view text);

}  // namespace penstock::base
