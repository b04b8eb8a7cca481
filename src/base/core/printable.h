// Makes untrusted text safe to print on a terminal, and short enough for where it is shown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace penstock::base {

/// Whether the text is UTF-8 without characters that a terminal interprets: control characters (C0,
/// DEL, and C1, U+0080 to U+009F, which many terminals treat as escape sequences), and those that
/// change the direction of the surrounding text (U+202A to U+202E, U+2066 to U+2069).
bool IsPrintable(std::string_view text);

/// The text with at most `most` bytes, `mark` included, with which a text ends that was cut. Does
/// not cut within a character of UTF-8.
std::string Shortened(std::string_view text, std::size_t most, std::string_view mark = "...");

/// The text with '?' for each such character, and for each byte that is not UTF-8.
std::string Printable(std::string_view text);

}  // namespace penstock::base
