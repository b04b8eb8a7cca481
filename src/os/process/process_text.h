// Parses files of /proc/PID; pure functions over their text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::os {

/// Fields of /proc/PID/stat (proc(5)).
struct StatFields {
  std::string name;  ///< (2) comm, without its parentheses; may hold any byte, parentheses too
  int parent = 0;    ///< (4)
  int group = 0;     ///< (5)
  std::uint64_t user = 0;    ///< (14) clock ticks
  std::uint64_t system = 0;  ///< (15) clock ticks
  std::uint64_t start = 0;   ///< (22) clock ticks since boot
  bool ended = false;        ///< (3, 20) a zombie without live threads: waits only for its parent
};
std::optional<StatFields> ParseStat(std::string_view text);

/// Paths in /proc/PID/cgroup (cgroups(7)), each once; the unified hierarchy's path first if there
/// is one.
std::vector<std::string> ParseCgroups(std::string_view text);

/// /proc/PID/cmdline for display: arguments joined by blanks, invalid UTF-8 and control characters
/// as '?'; "[name]" if empty.
std::string DescribeCommand(std::string_view cmdline, std::string_view name);

/// The first number in a line "Key:  123 kB" of a file such as /proc/PID/status.
std::optional<std::uint64_t> FindNumber(std::string_view text, std::string_view key);

}  // namespace penstock::os
