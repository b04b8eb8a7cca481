#include "base/core/clock.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

namespace penstock::base {
namespace {

constexpr std::int64_t kEnd = 7'258'118'400;  // 2200

}  // namespace

std::string FormatTime(WallTime time) {
  const auto since = time.time_since_epoch();
  const auto seconds = std::chrono::floor<std::chrono::seconds>(since);
  const auto milliseconds =
      std::chrono::duration_cast<std::chrono::milliseconds>(since - seconds).count();
  const std::time_t when = seconds.count();
  std::tm utc{};
  gmtime_r(&when, &utc);
  std::array<char, 40> buffer{};
  const std::size_t length = std::strftime(buffer.data(), buffer.size(), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(buffer.data() + length, buffer.size() - length, ".%03dZ",
                static_cast<int>(milliseconds));
  return buffer.data();
}

WallTime NearestTime(std::int64_t seconds) {
  return WallTime(std::chrono::seconds(std::clamp<std::int64_t>(seconds, 0, kEnd)));
}

WallTime ParseTime(const std::string& text) {
  std::tm utc{};
  const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &utc);
  if (rest == nullptr) return {};
  int milliseconds = 0;
  if (*rest == '.' && std::sscanf(rest, ".%3dZ", &milliseconds) != 1) return {};
  const std::time_t seconds = timegm(&utc);
  if (seconds < 0 || seconds >= kEnd || milliseconds < 0) return {};
  return WallTime(std::chrono::seconds(seconds) + std::chrono::milliseconds(milliseconds));
}

std::string FormatDuration(Duration duration) {
  const auto total = std::chrono::duration_cast<std::chrono::milliseconds>(duration).count();
  if (total < 1000) return std::to_string(total) + "ms";
  const auto seconds = total / 1000;
  struct Unit {
    long long seconds;
    const char* name;
  };
  static constexpr std::array<Unit, 4> kUnits = {{{86400, "d"}, {3600, "h"}, {60, "m"}, {1, "s"}}};
  for (std::size_t i = 0; i < kUnits.size(); ++i) {
    if (seconds < kUnits[i].seconds) continue;
    std::string text = std::to_string(seconds / kUnits[i].seconds) + kUnits[i].name;
    const auto rest = seconds % kUnits[i].seconds;
    if (i + 1 < kUnits.size() && rest >= kUnits[i + 1].seconds)
      text += std::to_string(rest / kUnits[i + 1].seconds) + kUnits[i + 1].name;
    return text;
  }
  return "0s";
}

}  // namespace penstock::base
