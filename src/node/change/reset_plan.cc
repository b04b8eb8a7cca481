// Checks every reason against a reset, in the order in which users can act on them.
#include "node/change/reset_plan.h"

#include <algorithm>
#include <iterator>

namespace penstock::node::change {
namespace {

constexpr std::size_t kMaxPerDay = 3;
constexpr base::Duration kApart = std::chrono::minutes(10);

std::string Names(const std::vector<std::string>& ids) {
  std::string names;
  for (const std::string& id : ids) names += (names.empty() ? "" : ", ") + id;
  return names;
}

/// The ids for which `question` returns true.
template <typename F>
std::vector<std::string> Of(const std::vector<std::string>& ids, F question) {
  std::vector<std::string> found;
  std::ranges::copy_if(ids, std::back_inserter(found), question);
  return found;
}

std::string WhyNot(const std::string& id, const std::map<std::string, ResetCandidate>& devices,
                   base::WallTime now) {
  const ResetCandidate& device = devices.at(id);
  const auto known = [&](const std::string& one) { return devices.contains(one); };
  if (device.before.size() >= kMaxPerDay)
    return "it was reset " + std::to_string(device.before.size()) +
           " times within a day and needs another reset: have the hardware inspected";
  if (!device.before.empty() && now - device.before.back() < kApart)
    return "it was reset at " + base::FormatTime(device.before.back()) +
           "; the next reset is attempted " + base::FormatDuration(kApart) + " later";
  if (device.not_before && now < *device.not_before)
    return "the reset is attempted again at " + base::FormatTime(*device.not_before);
  const auto gone = Of(device.together, [&](const std::string& one) {
    return !known(one) || !devices.at(one).present;
  });
  if (!gone.empty()) return "it can only be reset together with " + Names(gone) + ", which is gone";
  if (!device.free) return "it will be reset when it is no longer in use";
  const auto busy =
      Of(device.together, [&](const std::string& one) { return !devices.at(one).free; });
  if (!busy.empty())
    return "it can only be reset together with " + Names(busy) +
           ", and waits until those are no longer in use";
  return "";
}

}  // namespace

ResetPlan PlanResets(const std::map<std::string, ResetCandidate>& devices, api::ResetPolicy policy,
                     base::WallTime now) {
  ResetPlan plan;
  if (policy == api::ResetPolicy::kNever) return plan;
  for (const auto& [id, device] : devices) {
    if (!device.needs_reset || std::ranges::find(plan.devices, id) != plan.devices.end()) continue;
    const std::string why_not = WhyNot(id, devices, now);
    if (!why_not.empty()) {
      plan.why_not[id] = why_not;
    } else if (plan.devices.empty()) {
      plan.devices = device.together;
    }
  }
  for (const std::string& id : plan.devices) plan.why_not.erase(id);
  return plan;
}

}  // namespace penstock::node::change
