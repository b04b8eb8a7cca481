#include "app/penstock/common/table.h"

#include <algorithm>
#include <cstdlib>

#include <sys/ioctl.h>
#include <unistd.h>

namespace penstock::app {

namespace {

constexpr std::size_t kLeastWidth = 40;  // narrower terminals wrap lines

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

}  // namespace

Style StyleOf(int fd) {
  if (::isatty(fd) == 0) return {};
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  Style style{.color = (no_color == nullptr || *no_color == '\0') && term != nullptr &&
                       std::string_view(term) != "dumb"};
  winsize size{};
  if (::ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col >= kLeastWidth) style.width = size.ws_col;
  return style;
}

std::string Paint(std::string_view text, Color color, const Style& style) {
  if (!style.color || color == Color::kNone || text.empty()) return std::string(text);
  return std::string(Code(color)) + std::string(text) + "\033[0m";
}

std::size_t Columns(std::string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](unsigned char c) { return (c & 0xc0) != 0x80; }));
}

std::string Cut(const std::string& text, std::size_t columns) {
  if (Columns(text) <= columns) return text;
  std::size_t end = 0;
  for (std::size_t left = columns; end < text.size(); ++end)
    if ((static_cast<unsigned char>(text[end]) & 0xc0) != 0x80 && left-- <= 1) break;
  return text.substr(0, end) + "…";
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
  std::string text;
  for (const auto& line : lines) {
    std::size_t used = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const bool last = i + 1 == line.size();
      const bool cut = last && style.width > used + 8;
      const std::string shown = cut ? Cut(line[i].text, style.width - used) : line[i].text;
      text += Paint(shown, line[i].color, style);
      if (!last) text.append(widths[i] - Columns(shown) + 2, ' ');
      used += widths[i] + 2;
    }
    text += '\n';
  }
  return text;
}

}  // namespace penstock::app
