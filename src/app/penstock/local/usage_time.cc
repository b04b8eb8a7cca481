// Each parser accepts the whole text or returns nothing.
#include "app/penstock/local/usage_time.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "base/core/quantity.h"
#include "base/core/strings.h"

namespace penstock::app {
namespace {

using base::Code;
using base::Error;
using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr std::int64_t kMaxDaysBack = 36500;

/// Parses exactly `count` digits at a position.
std::optional<int> Digits(std::string_view text, std::size_t at, std::size_t count) {
  if (text.size() < at + count || text[at] == '-') return std::nullopt;
  const auto number = base::ParseInt(text.substr(at, count));
  return number ? std::optional(static_cast<int>(*number)) : std::nullopt;
}

std::optional<base::WallTime> ParseDay(std::string_view text) {
  const auto year = Digits(text, 0, 4), month = Digits(text, 5, 2), day = Digits(text, 8, 2);
  if (!year || *year < 1970 || *year >= 2200 || !month || !day || text[4] != '-' || text[7] != '-')
    return std::nullopt;
  const std::chrono::year_month_day date{std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date);
}

/// Parses "Z", "+01:00", "-08:00".
std::optional<minutes> ParseOffset(std::string_view text) {
  if (text == "Z" || text == "z") return minutes(0);
  const auto hour = Digits(text, 1, 2), minute = Digits(text, 4, 2);
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':' || !hour ||
      !minute || *hour > 23 || *minute > 59)
    return std::nullopt;
  const minutes offset = hours(*hour) + minutes(*minute);
  return text[0] == '+' ? offset : -offset;
}

std::optional<base::WallTime> ParseTime(std::string_view text) {
  const auto day = ParseDay(text.substr(0, 10));
  if (!day || text.size() == 10) return day;
  const auto hour = Digits(text, 11, 2), minute = Digits(text, 14, 2), second = Digits(text, 17, 2);
  if ((text[10] != 'T' && text[10] != ' ') || !hour || !minute || !second || *hour > 23 ||
      *minute > 59 || *second > 60)
    return std::nullopt;
  std::size_t rest = 19;
  if (text.size() > rest && text[rest] == '.')
    rest = std::min(text.find_first_not_of("0123456789", rest + 1), text.size());
  const auto offset = ParseOffset(text.substr(rest));
  if (!offset || text[13] != ':' || text[16] != ':') return std::nullopt;
  return *day + hours(*hour) + minutes(*minute) + seconds(*second) - *offset;
}

std::optional<base::Duration> ParseAgo(std::string_view text) {
  if (text.ends_with('d') || text.ends_with('w')) {
    const auto count = base::ParseInt(text.substr(0, text.size() - 1));
    if (!count || *count < 0 || *count > kMaxDaysBack) return std::nullopt;
    return days(*count * (text.ends_with('w') ? 7 : 1));
  }
  const auto ago = base::ParseDuration(text);
  return ago.ok() && *ago >= base::Duration::zero() ? std::optional(*ago) : std::nullopt;
}

}  // namespace

base::Result<base::WallTime> ParseWhen(std::string_view text, base::WallTime now) {
  if (const auto time = ParseTime(text)) return *time;
  if (const auto ago = ParseAgo(text))
    return now - std::chrono::duration_cast<base::WallTime::duration>(*ago);
  return Error(
      Code::kInvalidArgument,
      "\"" + std::string(text) +
          "\" is not a time; use 2026-11-21 or 2026-11-21T03:42:00Z, or how long ago: 24h or 7d");
}

}  // namespace penstock::app
