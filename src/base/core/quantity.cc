#include "base/core/quantity.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <span>

namespace penstock::base {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

/// Removes a decimal number from the start of the text; false if there is none.
bool TakeNumber(std::string_view& text, double& number) {
  std::size_t length = 0;
  while (length < text.size() &&
         ((text[length] >= '0' && text[length] <= '9') || text[length] == '.'))
    ++length;
  if (length == 0) return false;
  const std::string digits(text.substr(0, length));
  char* end = nullptr;
  number = std::strtod(digits.c_str(), &end);
  if (*end != '\0' || digits == ".") return false;
  text.remove_prefix(length);
  return true;
}

const Unit* FindUnit(std::span<const Unit> units, std::string_view name) {
  for (const Unit& unit : units)
    if (unit.name == name) return &unit;
  return nullptr;
}

constexpr std::array<Unit, 11> kSizes = {{{"", 1},
                                          {"Ki", 0x1p10},
                                          {"Mi", 0x1p20},
                                          {"Gi", 0x1p30},
                                          {"Ti", 0x1p40},
                                          {"Pi", 0x1p50},
                                          {"k", 1e3},
                                          {"M", 1e6},
                                          {"G", 1e9},
                                          {"T", 1e12},
                                          {"P", 1e15}}};
constexpr std::array<Unit, 7> kTimes = {
    {{"h", 3600e9}, {"m", 60e9}, {"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"µs", 1e3}, {"ns", 1}}};

}  // namespace

Result<Bytes> ParseBytes(std::string_view text) {
  std::string_view rest = text;
  double number = 0;
  const Unit* unit = TakeNumber(rest, number) ? FindUnit(kSizes, rest) : nullptr;
  if (unit == nullptr || number * unit->factor >= 0x1p63)
    return Error(Code::kInvalidArgument,
                 "\"" + std::string(text) +
                     "\" is not a size: write bytes or a quantity such as 512Mi, 10Gi or 1.5G");
  return Bytes{static_cast<std::uint64_t>(std::llround(number * unit->factor))};
}

std::string FormatBytes(Bytes bytes) {
  static constexpr std::array<const char*, 6> kNames = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  auto value = static_cast<double>(bytes.count);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kNames.size(); ++unit) value /= 1024;
  std::array<char, 32> buffer{};
  std::snprintf(buffer.data(), buffer.size(),
                std::fabs(value - std::round(value)) < 0.05 ? "%.0f %s" : "%.1f %s", value,
                kNames[unit]);
  return buffer.data();
}

Result<Duration> ParseDuration(std::string_view text) {
  const auto wrong = [text](std::string_view why) {
    return Error(Code::kInvalidArgument, "\"" + std::string(text) + "\" is not a duration" +
                                             std::string(why) +
                                             ": write for example 500ms, 30s, 10m or 1h30m");
  };
  if (text.empty()) return wrong("");
  double total = 0;
  for (std::string_view rest = text; !rest.empty();) {
    double number = 0;
    if (!TakeNumber(rest, number)) return wrong("");
    const std::size_t length = std::min(rest.size(), rest.find_first_of("0123456789."));
    const Unit* unit = FindUnit(kTimes, rest.substr(0, length));
    if (unit == nullptr) return wrong(length == 0 ? " (it has no unit)" : "");
    total += number * unit->factor;
    rest.remove_prefix(length);
  }
  if (total >= 0x1p63) return wrong(" (it is too long)");
  return Duration(static_cast<std::int64_t>(std::llround(total)));
}

}  // namespace penstock::base
