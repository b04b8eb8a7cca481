#include "app/penstock/top/top_draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string_view>

namespace penstock::app {
namespace {

constexpr std::array<std::string_view, 8> kEighthsAcross{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
constexpr std::array<std::string_view, 8> kEighthsUp{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
constexpr std::array<std::string_view, 8> kLettersUp{"_", ".", ":", "-", "=", "+", "*", "#"};

double Bounded(double value) { return std::clamp(value, 0.0, 1.0); }

std::string Repeat(std::string_view text, std::size_t times) {
  std::string repeated;
  for (std::size_t i = 0; i < times; ++i) repeated += text;
  return repeated;
}

}  // namespace

std::string Fit(const std::string& text, std::size_t columns, bool right) {
  const std::string cut = Cut(Printable(text), columns);
  const std::string blanks(columns - std::min(columns, Columns(cut)), ' ');
  return right ? blanks + cut : cut + blanks;
}

std::string Bar(std::optional<double> value, std::size_t columns, Color color, const Pen& pen) {
  if (!value) return std::string(columns, ' ');
  const auto eighths =
      static_cast<std::size_t>(std::lround(Bounded(*value) * static_cast<double>(columns) * 8));
  std::size_t whole = eighths / 8;
  std::string filled;
  if (pen.unicode) {
    filled = Repeat("█", whole) + std::string(kEighthsAcross[eighths % 8]);
    if (eighths % 8 != 0) ++whole;
  } else {
    whole = (eighths + 4) / 8;
    filled = std::string(whole, '|');
  }
  return Paint(filled, color, pen.style) +
         Paint(Repeat(pen.unicode ? "·" : ".", columns - whole), Color::kDim, pen.style);
}

std::string Sparkline(const std::vector<std::optional<double>>& values, std::size_t columns,
                      Color color, const Pen& pen) {
  const auto& levels = pen.unicode ? kEighthsUp : kLettersUp;
  const std::size_t shown = std::min(columns, values.size());
  std::string line(columns - shown, ' ');
  for (auto value = values.end() - static_cast<std::ptrdiff_t>(shown); value != values.end();
       ++value)
    line += *value
                ? levels[std::min<std::size_t>(7, static_cast<std::size_t>(Bounded(**value) * 8))]
                : " ";
  return Paint(line, color, pen.style);
}

std::string InLetters(const std::string& text) {
  constexpr std::string_view kEllipsis = "…";
  std::string letters;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte < 0x80) {
      letters += text[i];
    } else if ((byte & 0xc0) != 0x80) {
      letters += text.compare(i, kEllipsis.size(), kEllipsis) == 0 ? '~' : '?';
    }
  }
  return letters;
}

std::string Percent(std::optional<double> ratio) {
  return ratio ? std::to_string(std::lround(*ratio * 100)) + "%" : "-";
}

std::string ShortBytes(std::optional<double> bytes) {
  if (!bytes) return "-";
  if (*bytes == 0) return "0";
  constexpr std::array kUnits{'K', 'M', 'G', 'T', 'P', 'E'};
  double amount = *bytes / 1024;
  std::size_t unit = 0;
  while (amount >= 999.5 && unit + 1 < kUnits.size()) {
    amount /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  const bool tenths = unit >= 2 && amount < 99.95;
  std::snprintf(text.data(), text.size(), tenths ? "%.1f%c" : "%.0f%c", amount, kUnits[unit]);
  return text.data();
}

}  // namespace penstock::app
