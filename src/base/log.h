// One line per thing that happened: a constant message and keys. Anything to alert on is a metric too.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/clock.h"

namespace penstock::base {

/// error: a human must act; warn: degraded; info: state changed; debug: for us.
enum class LogLevel { kDebug, kInfo, kWarn, kError };

/// A key and its value in a log line.
struct Field {
  std::string_view key;
  std::string value;

  Field(std::string_view k, std::string v) : key(k), value(std::move(v)) {}
  Field(std::string_view k, std::string_view v) : key(k), value(v) {}
  Field(std::string_view k, const char* v) : key(k), value(v) {}
  Field(std::string_view k, bool v) : key(k), value(v ? "true" : "false") {}
  Field(std::string_view k, int v) : key(k), value(std::to_string(v)) {}
  Field(std::string_view k, long v) : key(k), value(std::to_string(v)) {}
  Field(std::string_view k, unsigned long v) : key(k), value(std::to_string(v)) {}
  Field(std::string_view k, Duration v) : key(k), value(FormatDuration(v)) {}
};

/// Sets how this process logs: the name in front and the least level written. Once, at start, before other threads.
void StartLog(std::string_view program, LogLevel least = LogLevel::kInfo);

/// Writes one line to standard error. Any thread. The same message at the same level and with the same first field is written at most
/// ten times a minute; what was held back is counted in the next line that is written ("repeated").
void Log(LogLevel level, std::string_view message, std::initializer_list<Field> fields = {});

inline constexpr LogLevel kDebug = LogLevel::kDebug;
inline constexpr LogLevel kInfo = LogLevel::kInfo;
inline constexpr LogLevel kWarn = LogLevel::kWarn;
inline constexpr LogLevel kError = LogLevel::kError;

}  // namespace penstock::base
