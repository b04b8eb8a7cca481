#include "backend/nvidia/mps/answers.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/core/strings.h"

namespace penstock::backend::nvidia::mps {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::uint64_t kMaxBytes = 1ull << 60;

/// The number "4" times the power of two that the letter after it stands for.
std::optional<base::Bytes> Scaled(std::string_view digits, int shift) {
  const auto number = base::ParseUint(digits);
  if (!number || *number > kMaxBytes >> shift) return std::nullopt;
  return base::Bytes{*number << shift};
}

}  // namespace

std::optional<double> ReadPercentage(std::string_view answer) {
  const std::string_view text = base::Trim(answer);
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc() || end != text.data() + text.size() || !(value > 0 && value <= 100))
    return std::nullopt;
  return value;
}

std::optional<base::Bytes> ReadMemory(std::string_view answer, base::Bytes requested) {
  std::string_view text = base::Trim(answer);
  if (text.empty()) return base::Bytes{};
  if (text.starts_with("0x")) {
    const auto number = base::ParseUint(text.substr(2), 16);
    return number && *number <= kMaxBytes ? std::optional(base::Bytes{*number}) : std::nullopt;
  }
  const char unit = text.back();
  const int shift = unit == 'G' ? 30 : unit == 'M' ? 20 : unit == 'K' ? 10 : 0;
  if (shift != 0 || unit == 'B') text.remove_suffix(1);
  const auto limit = Scaled(text, shift);
  return limit && limit->count != 0 && requested.count >> shift == limit->count >> shift ? requested
                                                                                         : limit;
}

std::optional<std::vector<pid_t>> ReadPids(std::string_view answer) {
  std::vector<pid_t> pids;
  for (std::size_t at = answer.find_first_not_of(kBlanks); at != std::string_view::npos;
       at = answer.find_first_not_of(kBlanks, at)) {
    const std::size_t end = std::min(answer.find_first_of(kBlanks, at), answer.size());
    const auto pid = base::ParseUint(answer.substr(at, end - at));
    if (!pid || *pid > static_cast<std::uint64_t>(std::numeric_limits<pid_t>::max()))
      return std::nullopt;
    pids.push_back(static_cast<pid_t>(*pid));
    at = end;
  }
  return pids;
}

std::string Quote(std::string_view answer) {
  constexpr std::size_t kMax = 60;
  const std::string_view line = answer.substr(0, answer.find('\n'));
  std::string text(base::Trim(line).substr(0, kMax));
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return "\"" + text + "\"";
}

}  // namespace penstock::backend::nvidia::mps
