// Makes untrusted text safe to print on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace penstock::base {

/// Whether the text is UTF-8 without characters that a terminal interprets: control characters (C0,
/// DEL, and C1, U+0080 to U+009F, which many terminals treat as escape sequences), and those that
/// change the direction of the surrounding text (U+202A to U+202E, U+2066 to U+2069).
bool IsPrintable(std::string_view text);

/// The text with '?' for each such character, and for each byte that is not UTF-8.
std::string Printable(std::string_view text);

}  // namespace penstock::base
