// Columns, colours and the width of a terminal: how `penstock` prints lists. Knows nothing of what is in them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/printable.h"

namespace penstock::app {

/// How to print: what a terminal at the descriptor can show, and what the user wants (NO_COLOR, https://no-color.org).
struct Style {
  bool color = false;
  std::size_t width = 0;  ///< columns; 0: as wide as it comes
};
Style StyleOf(int fd);

enum class Color { kNone, kBold, kGreen, kYellow, kRed, kCyan, kDim };

/// The text in a colour, where colours are used.
std::string Paint(std::string_view text, Color color, const Style& style);

struct Cell {
  std::string text;
  Color color = Color::kNone;

  Cell(std::string t, Color c = Color::kNone) : text(std::move(t)), color(c) {}
  Cell(const char* t) : text(t) {}
};

/// Rows under a header in aligned columns, two blanks apart. The last column is cut where a line would be wider than the terminal. What a
/// terminal would act on, which other programs' names may have, is shown as '?'.
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

/// How wide the text is: its code points; good enough for what is printed here.
std::size_t Columns(std::string_view text);

/// As much of the text as fits into so many columns, with "…" where some of it does not.
std::string Cut(const std::string& text, std::size_t columns);

}  // namespace penstock::app
