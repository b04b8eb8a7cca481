// Logs where users look for the runtime's messages: in the log of the low-level runtime, from which
// engines take the reason of a failure, and in the debug file of config.toml. Standard error
// belongs to the container until the program fails.
#pragma once

#include <string>
#include <string_view>

#include "hook/runtime/arguments.h"
#include "hook/runtime/nvidia/config.h"
#include "os/core/fd.h"

namespace penstock::hook::runtime {

/// Opens its files when there is something to write. Lines that cannot be written are lost: logging
/// never fails a container.
class RunLog {
 public:
  explicit RunLog(LogOptions options) : options_(std::move(options)) {}

  /// Sets the debug file and its level from config.toml; before this call nothing is written to a
  /// debug file.
  void Configure(const Config& config);

  /// Writes one line. Warnings and errors also go to the low-level runtime's log; other lines would
  /// hide that runtime's message from engines that read only one line.
  void Write(RuntimeLogLevel level, std::string_view message);

 private:
  LogOptions options_;
  std::string debug_file_;
  RuntimeLogLevel least_ = RuntimeLogLevel::kInfo;
  os::UniqueFd runtime_log_, debug_log_;
};

/// Formats a line as logrus does, as text or as JSON, which engines parse. Control characters are
/// replaced and overlong messages shortened.
std::string FormatLogLine(RuntimeLogLevel level, std::string_view message, std::string_view time,
                          bool json);

}  // namespace penstock::hook::runtime
