#include "backend/nvidia/dialect/capability_files.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "base/core/strings.h"

namespace penstock::backend::nvidia {
namespace {

constexpr std::string_view kConfig = "config", kMonitor = "monitor";

/// Whether the word is the prefix followed by a number.
bool IsNumbered(std::string_view word, std::string_view prefix) {
  if (!word.starts_with(prefix)) return false;
  const std::string_view digits = word.substr(prefix.size());
  return std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; }) &&
         base::ParseUint(digits).has_value();
}

/// "config", "monitor", "gpu0/gi1/access", "gpu0/gi1/ci0/access".
bool IsCapability(std::string_view name) {
  if (name == kConfig || name == kMonitor) return true;
  const auto parts = base::Split(name, '/');
  if (parts.size() < 3 || parts.size() > 4 || parts.back() != "access") return false;
  return IsNumbered(parts[0], "gpu") && IsNumbered(parts[1], "gi") &&
         (parts.size() == 3 || IsNumbered(parts[2], "ci"));
}

std::optional<std::uint32_t> Minor(std::string_view text) {
  const auto number = base::ParseUint(text);
  if (!number || *number > std::numeric_limits<std::uint32_t>::max()) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

/// What is wrong with a line; empty if it is valid and was added.
std::string TakeLine(std::string_view line, CapabilityMinors& minors) {
  const auto space = line.find(' ');
  const std::string_view name = line.substr(0, space);
  if (space == std::string_view::npos || !IsCapability(name))
    return "expected a line \"CAPABILITY MINOR\"";
  const auto minor = Minor(line.substr(space + 1));
  if (!minor) return "the minor number of " + std::string(name) + " is invalid";
  return minors.emplace(name, *minor).second ? "" : std::string(name) + " appears twice";
}

}  // namespace

base::Result<CapabilityMinors> ParseCapabilityMinors(std::string_view text, std::string_view file) {
  CapabilityMinors minors;
  std::vector<std::string> problems;
  std::size_t number = 0;
  for (const std::string& line : base::Split(text, '\n')) {
    ++number;
    if (line.empty()) continue;
    if (const std::string problem = TakeLine(line, minors); !problem.empty())
      problems.push_back(std::string(file) + ":" + std::to_string(number) + ": " + problem);
  }
  if (!problems.empty()) return Error(Code::kInvalidArgument, base::Join(problems, "\n"));
  return minors;
}

std::string CapabilityFile(std::uint32_t minor) {
  return "/dev/nvidia-caps/nvidia-cap" + std::to_string(minor);
}

base::Result<std::map<std::string, std::string>> ManagementCapabilityFiles(
    std::string_view mig_minors) {
  ASSIGN(const CapabilityMinors minors, ParseCapabilityMinors(mig_minors, "mig-minors"));
  std::map<std::string, std::string> files;
  for (const std::string_view name : {kConfig, kMonitor})
    if (const auto found = minors.find(name); found != minors.end())
      files.emplace(name, CapabilityFile(found->second));
  return files;
}

}  // namespace penstock::backend::nvidia
