// Treats the text of /proc as untrusted: a process chooses its own name and arguments.
#include "os/process/process_text.h"

#include <algorithm>

#include "base/core/printable.h"
#include "base/core/strings.h"

namespace penstock::os {
namespace {

/// Arguments in one line.
std::string Describe(std::string_view text) {
  std::string line(text);
  std::replace_if(
      line.begin(), line.end(), [](char c) { return c == '\0' || c == '\n' || c == '\t'; }, ' ');
  return base::Printable(line);
}

}  // namespace

std::optional<StatFields> ParseStat(std::string_view text) {
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open)
    return std::nullopt;
  if (text.substr(close + 1).find_first_not_of(" \n") == std::string_view::npos)
    return std::nullopt;
  const auto fields = base::Split(base::Trim(text.substr(close + 1)), ' ');  // [0] is field 3
  if (fields.size() < 20) return std::nullopt;
  const auto parent = base::ParseInt(fields[1]);
  const auto group = base::ParseInt(fields[2]);
  const auto user = base::ParseUint(fields[11]);
  const auto system = base::ParseUint(fields[12]);
  const auto start = base::ParseUint(fields[19]);
  const auto is_pid = [](const auto& number) {
    return number && *number >= 0 && *number <= 0x7fffffff;
  };
  if (!is_pid(parent) || !is_pid(group) || !user || !system || !start) return std::nullopt;
  const bool ended =
      (fields[0] == "Z" || fields[0] == "X") && base::ParseUint(fields[17]).value_or(0) <= 1;
  return StatFields{std::string(text.substr(open + 1, close - open - 1)),
                    static_cast<int>(*parent),
                    static_cast<int>(*group),
                    *user,
                    *system,
                    *start,
                    ended};
}

std::vector<std::string> ParseCgroups(std::string_view text) {
  constexpr std::string_view kDeleted = " (deleted)";
  std::vector<std::string> paths;
  std::optional<std::string> unified;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const auto first = line.find(':');
    const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos || second + 1 >= line.size() || line[second + 1] != '/')
      continue;
    std::string_view path = line.substr(second + 1);
    if (path.ends_with(kDeleted)) path.remove_suffix(kDeleted.size());
    if (line.substr(0, first) == "0" && second == first + 1) {
      unified = path;
    } else if (std::ranges::find(paths, path) == paths.end()) {
      paths.emplace_back(path);
    }
  }
  if (unified) {
    std::erase(paths, *unified);
    paths.insert(paths.begin(), *unified);
  }
  return paths;
}

std::string DescribeCommand(std::string_view cmdline, std::string_view name) {
  const auto last = cmdline.find_last_not_of('\0');
  if (last == std::string_view::npos) return "[" + Describe(name) + "]";
  return Describe(cmdline.substr(0, last + 1));
}

std::optional<std::uint64_t> FindNumber(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (!line.starts_with(key) || line.size() <= key.size() || line[key.size()] != ':') continue;
    line.remove_prefix(key.size() + 1);
    const auto start = line.find_first_not_of(" \t");
    if (start == std::string_view::npos) return std::nullopt;
    line.remove_prefix(start);
    return base::ParseUint(line.substr(0, line.find_first_of(" \t")));
  }
  return std::nullopt;
}

}  // namespace penstock::os
