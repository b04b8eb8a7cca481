#include "app/penstock/common/table.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <numeric>

#include <sys/ioctl.h>
#include <unistd.h>

namespace penstock::app {

namespace {

constexpr std::size_t kLeastWidth = 40;  // narrower terminals wrap lines
constexpr std::size_t kNarrow = 60;      // rows become blocks where the table does not fit
constexpr std::size_t kLeastLast = 8;    // of the last column, which is cut where there is no room

std::string_view Code(Color color) {
  switch (color) {
    case Color::kNone: return "";
    case Color::kBold: return "\033[1m";
    case Color::kGreen: return "\033[32m";
    case Color::kYellow: return "\033[33m";
    case Color::kRed: return "\033[31m";
    case Color::kCyan: return "\033[36m";
    case Color::kDim: return "\033[2m";
  }
  return "";
}

std::string_view MarkOf(const Style& style) { return style.unicode ? "…" : "~"; }

/// Returns the code point at this place and moves behind it; a byte that starts none counts alone.
std::uint32_t NextCodePoint(std::string_view text, std::size_t& at) {
  const auto lead = static_cast<unsigned char>(text[at++]);
  const int more = lead >= 0xf0 ? 3 : lead >= 0xe0 ? 2 : lead >= 0xc0 ? 1 : 0;
  std::uint32_t code = more == 0 ? lead : lead & (0x3fu >> more);
  for (int i = 0; i < more && at < text.size(); ++i)
    code = code << 6 | (static_cast<unsigned char>(text[at++]) & 0x3fu);
  return code;
}

struct Range {
  std::uint32_t first, last;
};
// Combining marks and signs without a width, and wide characters: the blocks of Unicode 15 that
// names consist of, not each of its exceptions.
constexpr std::array kNoWidth = {
    Range{0x300, 0x36f},   Range{0x483, 0x489},   Range{0x591, 0x5bd},
    Range{0x610, 0x61a},   Range{0x64b, 0x65f},   Range{0x200b, 0x200f},
    Range{0x20d0, 0x20f0}, Range{0xfe00, 0xfe0f}, Range{0xfe20, 0xfe2f}};
constexpr std::array kWide = {
    Range{0x1100, 0x115f},   Range{0x2e80, 0xa4cf},  Range{0xac00, 0xd7a3}, Range{0xf900, 0xfaff},
    Range{0xfe30, 0xfe6f},   Range{0xff00, 0xff60},  Range{0xffe0, 0xffe6}, Range{0x1f300, 0x1f64f},
    Range{0x1f900, 0x1f9ff}, Range{0x20000, 0x3fffd}};

std::size_t WidthOf(std::uint32_t code) {
  const auto holds = [code](const Range& range) {
    return code >= range.first && code <= range.last;
  };
  if (std::any_of(kNoWidth.begin(), kNoWidth.end(), holds)) return 0;
  return std::any_of(kWide.begin(), kWide.end(), holds) ? 2 : 1;
}

/// For a terminal that is too narrow for the table: a block for each row, a line for each value.
std::string Stacked(const std::vector<std::vector<Cell>>& lines, const Style& style) {
  std::size_t label = 0;
  for (const Cell& title : lines.front()) label = std::max(label, Columns(title.text) + 2);
  std::string text;
  for (std::size_t row = 1; row < lines.size(); ++row) {
    if (row > 1) text += '\n';
    for (std::size_t i = 0; i < lines[row].size(); ++i) {
      const std::string& title = lines.front()[i].text;
      const Cell& cell = lines[row][i];
      const std::size_t left = style.width - std::min(style.width - 1, label);
      text += Paint(title, Color::kBold, style) + std::string(label - Columns(title), ' ') +
              Paint(Cut(cell.text, left, MarkOf(style)), cell.color, style) + '\n';
    }
  }
  return text;
}

}  // namespace

Style StyleOf(int fd) {
  if (::isatty(fd) == 0) return {};
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  Style style{.color = (no_color == nullptr || *no_color == '\0') && term != nullptr &&
                       std::string_view(term) != "dumb",
              .unicode = LocaleIsUtf8()};
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= kLeastWidth) style.width = size.ws_col;
  return style;
}

std::string Paint(std::string_view text, Color color, const Style& style) {
  if (!style.color || color == Color::kNone || text.empty()) return std::string(text);
  return std::string(Code(color)) + std::string(text) + "\033[0m";
}

std::size_t Columns(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) columns += WidthOf(NextCodePoint(text, at));
  return columns;
}

std::string Cut(const std::string& text, std::size_t columns, std::string_view mark) {
  if (Columns(text) <= columns) return text;
  std::size_t end = 0, used = 0;
  for (std::size_t at = 0; at < text.size(); end = at) {
    used += WidthOf(NextCodePoint(text, at));
    if (used + 1 > columns) break;
  }
  return text.substr(0, end) + std::string(mark);
}

bool LocaleIsUtf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale(value);
    for (const std::string_view encoding : {"UTF-8", "utf8", "UTF8", "utf-8"})
      if (locale.find(encoding) != std::string_view::npos) return true;
    return false;
  }
  return false;
}

std::string Table::Render(const Style& style) const {
  std::vector<std::vector<Cell>> lines(1);
  for (const std::string& title : header_) lines[0].emplace_back(title, Color::kBold);
  lines.insert(lines.end(), rows_.begin(), rows_.end());

  std::vector<std::size_t> widths(header_.size());
  for (auto& line : lines) {
    for (std::size_t i = 0; i < line.size(); ++i) {
      line[i].text = line[i].text.empty() ? "-" : Printable(line[i].text);
      widths[i] = std::max(widths[i], Columns(line[i].text));
    }
  }
  const std::size_t fixed = std::accumulate(widths.begin(), widths.end(), std::size_t{0}) -
                            widths.back() + 2 * (widths.size() - 1);
  const bool fits = style.width == 0 || fixed + std::min(widths.back(), kLeastLast) <= style.width;
  if (!fits && style.width < kNarrow) return Stacked(lines, style);
  std::string text;
  for (std::size_t row = style.headers ? 0 : 1; row < lines.size(); ++row) {
    const auto& line = lines[row];
    for (std::size_t i = 0; i + 1 < line.size(); ++i)
      text += Paint(line[i].text, line[i].color, style) +
              std::string(widths[i] - Columns(line[i].text) + 2, ' ');
    const Cell& last = line.back();
    const bool cut = fits && style.width > 0 && fixed + Columns(last.text) > style.width;
    text += Paint(cut ? Cut(last.text, style.width - fixed, MarkOf(style)) : last.text, last.color,
                  style) +
            '\n';
  }
  return text;
}

}  // namespace penstock::app
