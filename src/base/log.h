// Writes one log line per event: a constant message with keys and values. Every event that deserves
// an alert also has a metric.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/clock.h"

namespace penstock::base {

/// error: a human must act; warn: degraded; info: state changed; debug: for developers.
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

/// Sets the program name in front of each line and the least level written. Call once at start,
/// before other threads exist.
void StartLog(std::string_view program, LogLevel least = LogLevel::kInfo);

/// Writes one line to standard error. Any thread. The same message at the same level and with the
/// same first field is written at most ten times a minute; the next line that is written counts the
/// suppressed ones ("repeated").
void Log(LogLevel level, std::string_view message, std::initializer_list<Field> fields = {});

inline constexpr LogLevel kDebug = LogLevel::kDebug;
inline constexpr LogLevel kInfo = LogLevel::kInfo;
inline constexpr LogLevel kWarn = LogLevel::kWarn;
inline constexpr LogLevel kError = LogLevel::kError;

}  // namespace penstock::base
