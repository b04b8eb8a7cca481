// What we have to say, where people look for it: the log of the low-level runtime, from which engines take the reason of a failure, and the
// debug file of config.toml. Standard error belongs to the container until something fails.
#pragma once

#include <string>
#include <string_view>

#include "hook/runtime/arguments.h"
#include "hook/runtime/config.h"
#include "os/core/fd.h"

namespace penstock::hook::runtime {

/// Opens files when there is something to write; what cannot be written is lost, a container does not fail for it.
class RunLog {
 public:
  explicit RunLog(LogOptions options) : options_(std::move(options)) {}

  /// Where and how much config.toml wants told besides; before that nothing goes to a debug file.
  void Configure(const Config& config);

  /// One line. Warnings and errors go to the runtime's own log too; other lines would hide its message from engines that read just one.
  void Write(LogLevel level, std::string_view message);

 private:
  LogOptions options_;
  std::string debug_file_;
  LogLevel least_ = LogLevel::kInfo;
  os::UniqueFd runtime_log_, debug_log_;
};

/// As logrus writes it, in text or as JSON, whose form engines parse. Control characters and what is too long for a line are replaced.
std::string FormatLogLine(LogLevel level, std::string_view message, std::string_view time, bool json);

}  // namespace penstock::hook::runtime
