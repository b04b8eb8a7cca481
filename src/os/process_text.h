// What files of /proc/PID say, as pure functions over their text. Opens nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace penstock::os {

/// Fields of /proc/PID/stat (proc(5)).
struct StatFields {
  std::string name;          ///< (2) comm, without its parentheses; may hold any byte, parentheses too
  int parent = 0;            ///< (4)
  std::uint64_t user = 0;    ///< (14) clock ticks
  std::uint64_t system = 0;  ///< (15) clock ticks
  std::uint64_t start = 0;   ///< (22) clock ticks since boot
  bool ended = false;        ///< (3, 20) a zombie without living threads: waits for its parent only
};
std::optional<StatFields> ParseStat(std::string_view text);

/// Paths of /proc/PID/cgroup (cgroups(7)), each once: first the unified one where there is one.
std::vector<std::string> ParseCgroups(std::string_view text);

/// /proc/PID/cmdline for people: arguments joined by blanks, bytes that are no UTF-8 and control characters as '?'; "[name]" where empty.
std::string DescribeCommand(std::string_view cmdline, std::string_view name);

/// The first number of a line "Key:  123 kB" of a file such as /proc/PID/status.
std::optional<std::uint64_t> FindNumber(std::string_view text, std::string_view key);

}  // namespace penstock::os
