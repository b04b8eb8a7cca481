// Accepts Slurm's forms (sbatch(1), --time) and Penstock's own.
#include "app/penstock/local/time_limit.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/core/quantity.h"
#include "base/core/strings.h"

namespace penstock::app {
namespace {

using base::Code;
using base::Error;

constexpr std::int64_t kMaxDays = 3650;
constexpr std::chrono::seconds kMax = std::chrono::hours(24 * kMaxDays);

/// Returns nothing where the text is not one of Slurm's forms. The parts are limited so that their
/// sum fits in seconds; in nanoseconds it may not fit.
std::optional<std::chrono::seconds> ParseSlurm(std::string_view text) {
  std::int64_t days = 0;
  const auto dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto number = base::ParseUint(text.substr(0, dash));
    if (!number || *number > static_cast<std::uint64_t>(kMaxDays)) return std::nullopt;
    days = static_cast<std::int64_t>(*number);
    text.remove_prefix(dash + 1);
  }
  std::vector<std::int64_t> parts;
  for (const std::string& part : base::Split(text, ':')) {
    const auto number = base::ParseUint(part);
    if (!number || *number > static_cast<std::uint64_t>(kMaxDays) * 24 * 60 * 60)
      return std::nullopt;
    parts.push_back(static_cast<std::int64_t>(*number));
  }
  if (parts.size() > 3) return std::nullopt;
  if (dash == std::string_view::npos && parts.size() < 3)
    parts.insert(parts.begin(), 0);  // a single number is minutes
  parts.resize(3);
  return std::chrono::hours(24 * days + parts[0]) + std::chrono::minutes(parts[1]) +
         std::chrono::seconds(parts[2]);
}

}  // namespace

base::Result<base::Duration> ParseTimeLimit(std::string_view text) {
  const std::string quoted = "\"" + std::string(text) + "\"";
  const Error too_long(Code::kInvalidArgument,
                       quoted + " is too long; omit --time for a run without a limit");
  base::Duration time{};
  if (const auto slurm = ParseSlurm(text)) {
    if (*slurm > kMax) return too_long;
    time = *slurm;
  } else {
    const auto duration = base::ParseDuration(text);
    if (!duration.ok())
      return Error(Code::kInvalidArgument, quoted +
                                               " is not a time; use 90 (minutes), 2:00:00, 1-12 "
                                               "(days-hours), 1-12:00:00, or 90m, 2h30m");
    time = *duration;
  }
  if (time < std::chrono::seconds(1))
    return Error(Code::kInvalidArgument, quoted + " is too short; the minimum is one second");
  if (time > kMax) return too_long;
  return time;
}

}  // namespace penstock::app
