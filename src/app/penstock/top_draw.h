// Bars, histories and fields of a live view, as text of a fixed width. Pure; knows nothing of devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/penstock/table.h"

namespace penstock::app {

/// What can be drawn with.
struct Pen {
  Style style;          ///< colours; the width is the frame's
  bool unicode = true;  ///< block characters; else letters that every terminal has
};

/// The text in exactly so many columns: cut, or with blanks behind it, or, to the right, before it. Control characters are shown as '?'.
std::string Fit(const std::string& text, std::size_t columns, bool right = false);

/// So much of the columns filled; nothing where the value (0 to 1) is not known.
std::string Bar(std::optional<double> value, std::size_t columns, Color color, const Pen& pen);

/// The last values (0 to 1), one a column, the newest one at the right; blanks where there was none.
std::string Sparkline(const std::vector<std::optional<double>>& values, std::size_t columns, Color color, const Pen& pen);

/// The text in letters that every terminal has: "~" for "…", "?" for what it does not have.
std::string InLetters(const std::string& text);

std::string Percent(std::optional<double> ratio);  ///< "67%", "-"

/// At most five columns: "0", "512M", "41.2G", "141G", "1.4T"; "-" for nothing.
std::string ShortBytes(std::optional<double> bytes);

}  // namespace penstock::app
