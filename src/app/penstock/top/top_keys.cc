#include "app/penstock/top/top_keys.h"

#include <algorithm>
#include <array>
#include <utility>

namespace penstock::app {
namespace {

constexpr char kEscape = '\033';
constexpr std::size_t kPage = 4;  // devices
constexpr std::size_t kLongestFilter = 60;

std::size_t CharacterLength(unsigned char first) {
  if (first >= 0xf0) return 4;
  if (first >= 0xe0) return 3;
  return first >= 0xc0 ? 2 : 1;
}

/// The length of a control sequence of ECMA-48, or of the two letters that some terminals send for
/// cursor keys.
std::size_t SequenceLength(const std::string& input) {
  if (input.size() < 3 || (input[1] != '[' && input[1] != 'O')) return 1;
  const auto end =
      std::find_if(input.begin() + 2, input.end(), [](char c) { return c >= 0x40 && c <= 0x7e; });
  return end == input.end() ? 1 : static_cast<std::size_t>(end - input.begin()) + 1;
}

void Scroll(std::size_t& first, int by) {
  if (by < 0) {
    first -= std::min(first, static_cast<std::size_t>(-by));
  } else {
    first += static_cast<std::size_t>(by);
  }
}

void Type(const std::string& key, TopView& view) {
  if (key == "\r" || key == "\n") {
    view.typing = false;
  } else if (key.front() == kEscape) {
    view.typing = false;
    view.filter.clear();
  } else if (key == "\177" || key == "\b") {
    while (!view.filter.empty() && (static_cast<unsigned char>(view.filter.back()) & 0xc0) == 0x80)
      view.filter.pop_back();
    if (!view.filter.empty()) view.filter.pop_back();
  } else if (static_cast<unsigned char>(key.front()) >= 0x20 &&
             view.filter.size() < kLongestFilter) {
    view.filter += key;
  }
  view.first_process = 0;
}

bool SortBy(char key, TopView& view) {
  constexpr std::array<std::pair<char, TopSort>, 5> kSorts{{{'c', TopSort::kCompute},
                                                            {'m', TopSort::kMemory},
                                                            {'p', TopSort::kPid},
                                                            {'d', TopSort::kDevice},
                                                            {'u', TopSort::kUser}}};
  for (const auto& [letter, sort] : kSorts) {
    if (letter != key) continue;
    view.reverse = view.sort == sort && !view.reverse;
    view.sort = sort;
    view.first_process = 0;
    return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> TakeKey(std::string& input) {
  if (input.empty()) return std::nullopt;
  const std::size_t length = input.front() == kEscape
                                 ? SequenceLength(input)
                                 : CharacterLength(static_cast<unsigned char>(input.front()));
  std::string key = input.substr(0, length);
  input.erase(0, length);
  return key;
}

bool PressKey(const std::string& key, TopView& view) {
  if (view.typing) {
    Type(key, view);
    return true;
  }
  if (std::exchange(view.help, false)) return true;
  if (key == "q") return false;
  if (key == "h" || key == "?") view.help = true;
  if (key == "/") view.typing = true;
  if (key == "\033") view.filter.clear();
  if (key == "\033[A" || key == "\033OA") Scroll(view.first_process, -1);
  if (key == "\033[B" || key == "\033OB") Scroll(view.first_process, 1);
  if (key == "\033[5~") Scroll(view.first_device, -static_cast<int>(kPage));
  if (key == "\033[6~") Scroll(view.first_device, static_cast<int>(kPage));
  if (key.size() == 1) SortBy(key.front(), view);
  return true;
}

}  // namespace penstock::app
