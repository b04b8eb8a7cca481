// Prints lists as tables: columns, colours, and the width of the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/core/printable.h"

namespace penstock::app {

/// How to print: the capabilities of a terminal and the user's preference (NO_COLOR,
/// https://no-color.org).
struct Style {
  bool color = false;
  std::size_t width = 0;  ///< columns; 0: unlimited
  bool headers = true;    ///< tables show their header
  bool unicode = true;    ///< the terminal shows characters beyond ASCII
};
Style StyleOf(int fd);

enum class Color { kNone, kBold, kGreen, kYellow, kRed, kCyan, kDim };

/// Returns the text in a colour, where colours are enabled.
std::string Paint(std::string_view text, Color color, const Style& style);

struct Cell {
  std::string text;
  Color color = Color::kNone;

  Cell(std::string t, Color c = Color::kNone) : text(std::move(t)), color(c) {}
  Cell(const char* t) : text(t) {}
};

/// Rows under a header in aligned columns, separated by two blanks. Cuts the last column where a
/// line would be wider than the terminal; where that is not enough, each row becomes a block of
/// lines, one for each value. Shows control characters, which names of other programs
/// may contain, as '?'.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void Add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
  bool empty() const { return rows_.empty(); }
  std::string Render(const Style& style) const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<Cell>> rows_;
};

using base::Printable;

/// The columns of a text on a terminal: wide characters take two, combining marks none.
std::size_t Columns(std::string_view text);

/// As much of the text as fits into `columns`, with the mark, which takes one, where it was cut.
std::string Cut(const std::string& text, std::size_t columns, std::string_view mark = "…");

/// Whether the locale of the environment (LC_ALL, LC_CTYPE, LANG) has UTF-8.
bool LocaleIsUtf8();

}  // namespace penstock::app
