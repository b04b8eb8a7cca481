// Draws bars, histories and fields of fixed width as text, for live views. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/penstock/common/table.h"

namespace penstock::app {

/// What the terminal can show.
struct Pen {
  Style style;          ///< colours; the width is that of the frame
  bool unicode = true;  ///< block characters; else ASCII
};

/// The text in exactly `columns` columns: cut, or padded with blanks at its right, or, with
/// `right`, at its left. Shows control characters as '?'.
std::string Fit(const std::string& text, std::size_t columns, bool right = false);

/// A bar that fills the ratio `value` (0 to 1) of the columns; blank where the value is unknown.
std::string Bar(std::optional<double> value, std::size_t columns, Color color, const Pen& pen);

/// The last values (0 to 1), one per column, the newest at the right; blank where there is no
/// value.
std::string Sparkline(const std::vector<std::optional<double>>& values, std::size_t columns,
                      Color color, const Pen& pen);

/// The text in ASCII: "~" for "…", "?" for other characters.
std::string InLetters(const std::string& text);

std::string Percent(std::optional<double> ratio);  ///< "67%", "-"

/// At most five columns: "0", "512M", "41.2G", "141G", "1.4T"; "-" for no value.
std::string ShortBytes(std::optional<double> bytes);

}  // namespace penstock::app
