// Finds the longest common sequence of lines with a table, which suits configuration files.
#include "protocol/engine/text/line_diff.h"

#include <algorithm>
#include <cstdint>

namespace penstock::protocol::engine {
namespace {

constexpr std::size_t kMaxCells = 4u << 20;
constexpr std::size_t kContext = 3;

using TextLines = std::vector<std::string_view>;

void Print(std::string& text, char mark, std::string_view line) {
  (text += mark) += line;
  if (!line.ends_with('\n')) text += "\n\\ No newline at end of file\n";
}

std::string Range(std::size_t begin, std::size_t end) {
  return std::to_string(end > begin ? begin + 1 : begin) +
         (end - begin == 1 ? "" : "," + std::to_string(end - begin));
}

/// Prints hunks whose contexts touch as one hunk.
void PrintGroup(std::string& text, const TextLines& a, const TextLines& b,
                const std::vector<Hunk>& hunks, std::size_t first, std::size_t last) {
  const std::size_t lead = std::min(kContext, hunks[first].before);
  const std::size_t trail = std::min(kContext, a.size() - hunks[last].before_end);
  text += "@@ -" + Range(hunks[first].before - lead, hunks[last].before_end + trail) + " +" +
          Range(hunks[first].after - lead, hunks[last].after_end + trail) + " @@\n";
  std::size_t at = hunks[first].before - lead;
  for (std::size_t i = first; i <= last; ++i) {
    for (; at < hunks[i].before; ++at) Print(text, ' ', a[at]);
    for (; at < hunks[i].before_end; ++at) Print(text, '-', a[at]);
    for (std::size_t added = hunks[i].after; added < hunks[i].after_end; ++added)
      Print(text, '+', b[added]);
  }
  for (const std::size_t end = at + trail; at < end; ++at) Print(text, ' ', a[at]);
}

}  // namespace

std::vector<std::string_view> Lines(std::string_view text) {
  TextLines lines;
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

std::vector<Hunk> Diff(const TextLines& a, const TextLines& b) {
  std::size_t x = 0, a_end = a.size(), b_end = b.size();
  while (x < a_end && x < b_end && a[x] == b[x]) ++x;
  for (; a_end > x && b_end > x && a[a_end - 1] == b[b_end - 1]; --a_end) --b_end;
  if (x == a_end && x == b_end) return {};
  const std::size_t first = x, width = b_end - first + 1;
  if ((a_end - first + 1) * width > kMaxCells) return {{first, a_end, first, b_end}};
  // How many lines at most the rest of `a` from a line, and that of `b`, have in common.
  std::vector<std::uint32_t> common((a_end - first + 1) * width, 0);
  const auto at = [&](std::size_t i, std::size_t j) -> std::uint32_t& {
    return common[(i - first) * width + (j - first)];
  };
  for (std::size_t i = a_end; i-- > first;)
    for (std::size_t j = b_end; j-- > first;)
      at(i, j) = a[i] == b[j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
  std::vector<Hunk> hunks;
  for (std::size_t y = first; x < a_end || y < b_end;) {
    Hunk hunk{x, x, y, y};
    while ((x < a_end || y < b_end) && !(x < a_end && y < b_end && a[x] == b[y]))
      ++(y == b_end || (x < a_end && at(x + 1, y) >= at(x, y + 1)) ? x : y);
    hunk.before_end = x;
    hunk.after_end = y;
    hunks.push_back(hunk);
    while (x < a_end && y < b_end && a[x] == b[y]) ++x, ++y;
  }
  return hunks;
}

std::string Unified(const std::string& path, const std::optional<std::string>& before,
                    const std::optional<std::string>& after) {
  const TextLines a = Lines(before ? *before : std::string_view()),
                  b = Lines(after ? *after : std::string_view());
  const auto hunks = Diff(a, b);
  if (hunks.empty() && before.has_value() == after.has_value()) return "";
  std::string text =
      "--- " + (before ? path : "/dev/null") + "\n+++ " + (after ? path : "/dev/null") + "\n";
  for (std::size_t first = 0; first < hunks.size();) {
    std::size_t last = first;
    while (last + 1 < hunks.size() &&
           hunks[last + 1].before - hunks[last].before_end <= 2 * kContext)
      ++last;
    PrintGroup(text, a, b, hunks, first, last);
    first = last + 1;
  }
  return text;
}

}  // namespace penstock::protocol::engine
