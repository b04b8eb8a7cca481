#include "operator/driver/upgrade_events.h"

namespace penstock::cluster {
namespace {

using enum UpgradeState;

UpgradeEvent WarningOf(std::string text, const std::string& reason, const std::string& message) {
  for (const std::string* part : {&reason, &message})
    if (!part->empty()) text += ": " + *part;
  return {.warning = true, .message = std::move(text)};
}

}  // namespace

std::optional<UpgradeEvent> UpgradeEventOf(const UpgradeRecord& before, const NodeStep& step) {
  const UpgradeRecord& after = step.record;
  if (before.held.empty() && !after.held.empty())
    return WarningOf(
        "The upgrade of the driver failed, and the one that worked here before is put back",
        after.reason, after.message);
  if (before.state != kFailed && after.state == kFailed)
    return WarningOf(
        after.reason == kRolledBack
            ? "The driver that worked here before is back, and stays until another one is wanted"
            : "The upgrade of the driver failed",
        after.reason, after.message);
  if (!IsUnderway(before.state) && IsUnderway(after.state)) {
    if (after.attempts == 0) return UpgradeEvent{.message = "The upgrade of the driver begins"};
    return UpgradeEvent{.message = "The upgrade of the driver begins again, attempt " +
                                   std::to_string(after.attempts + 1)};
  }
  if (IsUnderway(before.state) && after.state == kDone)
    return UpgradeEvent{.message = "The upgrade of the driver is done"};
  if (after.state == kDone && after.reason == kNotWorking && before.reason != kNotWorking)
    return WarningOf("The driver stopped working after its upgrade, and other nodes wait", "",
                     after.message);
  if (!after.blocked.empty() && after.blocked != before.blocked)
    return WarningOf("The upgrade of the driver waits",
                     after.blocked.substr(after.blocked.rfind(',') + 1), step.message);
  return std::nullopt;
}

}  // namespace penstock::cluster
