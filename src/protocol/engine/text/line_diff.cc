// Implements Myers' greedy algorithm, forwards, and keeps the trace.
#include "protocol/engine/text/line_diff.h"

#include <algorithm>

namespace penstock::protocol::engine {
namespace {

constexpr int kMaxEdits = 2000;
constexpr std::size_t kContext = 3;

using TextLines = std::vector<std::string_view>;

/// Records, for each number of edits, how far each diagonal came; then walks back and marks the
/// lines that are in both texts.
class Search {
 public:
  Search(const TextLines& a, const TextLines& b)
      : a_(a), b_(b), n_(static_cast<int>(a.size())), m_(static_cast<int>(b.size())) {}

  /// Returns the pairs of equal lines, in order; nothing if too much differs.
  std::optional<std::vector<std::pair<int, int>>> Run() {
    std::vector<int> far(static_cast<std::size_t>(2 * kMaxEdits + 3), 0);
    const int zero = kMaxEdits + 1;
    for (int d = 0; d <= std::min(kMaxEdits, n_ + m_); ++d) {
      trace_.emplace_back(far.begin() + zero - d - 1, far.begin() + zero + d + 2);
      for (int k = -d; k <= d; k += 2) {
        const auto at = [&far](int diagonal) -> int& {
          return far[static_cast<std::size_t>(zero + diagonal)];
        };
        int x = k == -d || (k != d && at(k - 1) < at(k + 1)) ? at(k + 1) : at(k - 1) + 1;
        while (x < n_ && x - k < m_ && Same(x, x - k)) ++x;
        at(k) = x;
        if (x >= n_ && x - k >= m_) return WalkBack(d);
      }
    }
    return std::nullopt;
  }

 private:
  bool Same(int x, int y) const {
    return a_[static_cast<std::size_t>(x)] == b_[static_cast<std::size_t>(y)];
  }

  std::vector<std::pair<int, int>> WalkBack(int d) const {
    std::vector<std::pair<int, int>> pairs;
    int x = n_, y = m_;
    for (; d >= 0; --d) {
      const auto& far = trace_[static_cast<std::size_t>(d)];
      const auto at = [&far, d](int diagonal) {
        return far[static_cast<std::size_t>(diagonal + d + 1)];
      };
      const int k = x - y;
      const int before_k = k == -d || (k != d && at(k - 1) < at(k + 1)) ? k + 1 : k - 1;
      const int before_x = d == 0 ? 0 : at(before_k);
      const int before_y = d == 0 ? 0 : before_x - before_k;
      while (x > before_x && y > before_y) pairs.emplace_back(--x, --y);
      x = before_x;
      y = before_y;
    }
    std::reverse(pairs.begin(), pairs.end());
    return pairs;
  }

  const TextLines &a_, &b_;
  int n_, m_;
  std::vector<std::vector<int>> trace_;
};

std::string Joined(const TextLines& lines, std::size_t begin, std::size_t end) {
  std::string text;
  for (std::size_t i = begin; i < end; ++i) text += lines[i];
  return text;
}

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

std::vector<Hunk> Diff(const TextLines& before, const TextLines& after) {
  auto pairs = Search(before, after).Run();
  if (!pairs) pairs.emplace();
  pairs->emplace_back(before.size(), after.size());
  std::vector<Hunk> hunks;
  std::size_t x = 0, y = 0;
  for (const auto& [same_x, same_y] : *pairs) {
    const auto to_x = static_cast<std::size_t>(same_x), to_y = static_cast<std::size_t>(same_y);
    if (to_x > x || to_y > y) hunks.push_back({x, to_x, y, to_y});
    x = to_x + 1;
    y = to_y + 1;
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

std::optional<std::string> Merge(std::string_view base, std::string_view ours,
                                 std::string_view theirs) {
  const TextLines b = Lines(base), o = Lines(ours), t = Lines(theirs);
  const auto our_hunks = Diff(b, o), their_hunks = Diff(b, t);
  std::string merged;
  std::size_t at = 0, i = 0, j = 0;
  while (i < our_hunks.size() || j < their_hunks.size()) {
    const bool ours_next = j == their_hunks.size() ||
                           (i < our_hunks.size() && our_hunks[i].before <= their_hunks[j].before);
    const Hunk& hunk = ours_next ? our_hunks[i++] : their_hunks[j++];
    const Hunk* other = ours_next ? (j < their_hunks.size() ? &their_hunks[j] : nullptr)
                                  : (i < our_hunks.size() ? &our_hunks[i] : nullptr);
    // Two insertions at one place have no defined order, so even hunks that only touch conflict.
    if (other != nullptr && other->before <= hunk.before_end) return std::nullopt;
    merged += Joined(b, at, hunk.before);
    merged +=
        ours_next ? Joined(o, hunk.after, hunk.after_end) : Joined(t, hunk.after, hunk.after_end);
    at = hunk.before_end;
  }
  return merged + Joined(b, at, b.size());
}

}  // namespace penstock::protocol::engine
