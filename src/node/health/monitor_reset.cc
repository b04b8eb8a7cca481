// The monitor's part in resets: which devices need one, which are being reset, and with what
// result.
#include "node/health/monitor.h"

namespace penstock::node::health {

namespace {

constexpr base::Duration kDay = std::chrono::hours(24);

}  // namespace

bool Monitor::NeedsReset(const std::string& id) const {
  const auto tracked = devices_.find(id);
  return tracked != devices_.end() && tracked->second.needs_reset;
}

bool Monitor::HasReading(const std::string& id) const {
  const auto tracked = devices_.find(id);
  return tracked != devices_.end() && tracked->second.last.has_value();
}

std::vector<base::WallTime> Monitor::ResetsOf(const std::string& id) const {
  const auto tracked = devices_.find(id);
  if (tracked == devices_.end()) return {};
  std::vector<base::WallTime> recent = tracked->second.resets;
  std::erase_if(recent,
                [now = executor_.clock().Wall()](base::WallTime at) { return now - at > kDay; });
  return recent;
}

void Monitor::SetResetNote(const std::string& id, const std::string& note) {
  const auto tracked = devices_.find(id);
  if (tracked == devices_.end() || tracked->second.note == note) return;
  tracked->second.note = note;
  if (tracked->second.last) Evaluate(id, tracked->second);
}

void Monitor::BeginReset(const std::map<std::string, std::string>& reasons) {
  for (const auto& [id, reason] : reasons) {
    Tracked& tracked = devices_[id];
    tracked.held = reason;
    Evaluate(id, tracked);
  }
}

void Monitor::EndReset(const std::vector<std::string>& ids, const base::Status& result) {
  for (const std::string& id : ids) {
    Tracked& tracked = devices_[id];
    tracked.held.clear();
    tracked.resets = ResetsOf(id);
    tracked.resets.push_back(executor_.clock().Wall());
    tracked.last.reset();
    ReportReset(id, tracked, result);
    if (result.ok()) {
      EndFaults(tracked);
      tracked.recovery.Watch();
      if (tracked.reason.empty()) tracked.reason = "it was reset";
    }
    Evaluate(id, tracked);
  }
  Changed();
}

void Monitor::ReportReset(const std::string& id, const Tracked& tracked,
                          const base::Status& result) {
  const bool refused = !result.ok() && result.error().code() == base::Code::kFailedPrecondition;
  history_.CountReset(id, result.ok() ? "done" : refused ? "refused" : "failed");
  const std::string why =
      tracked.reason.empty() ? "it is reset together with another device" : tracked.reason;
  if (result.ok())
    return history_.Notify(false, id, "DeviceReset", id + " was reset: " + why,
                           executor_.clock().Wall());
  history_.Notify(true, id, "DeviceResetFailed",
                  id + " could not be reset (" + why + "): " + result.error().message(),
                  executor_.clock().Wall());
}

}  // namespace penstock::node::health
