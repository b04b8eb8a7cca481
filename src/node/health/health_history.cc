#include "node/health/health_history.h"

#include "base/log.h"

namespace penstock::node::health {
namespace {

constexpr std::size_t kMaxNotices = 64;

}  // namespace

std::vector<std::string> HealthHistory::Update(const inventory::Snapshot& snapshot) {
  for (const inventory::Entry& entry : snapshot.devices) UpdateOne(entry, seen_[entry.facts->id]);
  std::vector<std::string> left;
  if (seen_.size() == snapshot.devices.size()) return left;
  for (auto seen = seen_.begin(); seen != seen_.end();) {
    const bool there = snapshot.Find(seen->first) != nullptr;
    if (!there) left.push_back(seen->first);
    seen = there ? std::next(seen) : seen_.erase(seen);
  }
  return left;
}

void HealthHistory::UpdateOne(const inventory::Entry& entry, Seen& seen) {
  const device::Health& health = entry.health;
  if (entry.replaced != seen.replaced) {
    seen.replaced = entry.replaced;
    base::Log(base::kWarn, "device replaced",
              {{"device", entry.facts->id}, {"what", entry.replaced}});
    Notify(false, entry.facts->id, "DeviceReplaced", entry.replaced, health.since);
  }
  if (health.state != seen.state && seen.known) {
    ++transitions_[{entry.facts->id, health.state}];
    seen.changed = health.since;
    seen.changed_because = health.reason.empty() ? seen.reason : health.reason;
  }
  seen.state = health.state;
  seen.reason = health.reason;
  seen.known = seen.known || health.state != device::HealthState::kUnknown;
}

HealthStatus HealthHistory::Of(const std::string& device) const {
  HealthStatus status;
  const auto seen = seen_.find(device);
  if (seen == seen_.end()) return status;
  status.changed = seen->second.changed;
  status.changed_because = seen->second.changed_because;
  return status;
}

void HealthHistory::Notify(bool warning, const std::string& device, std::string reason,
                           std::string message, base::WallTime now) {
  notices_.push_back({next_notice_++, now, warning, device, std::move(reason), std::move(message)});
  if (notices_.size() > kMaxNotices) notices_.pop_front();
}

std::vector<TransitionCount> HealthHistory::Transitions() const {
  std::vector<TransitionCount> counts;
  for (const auto& [what, count] : transitions_) counts.push_back({what.first, what.second, count});
  return counts;
}

std::vector<ResetCount> HealthHistory::Resets() const {
  std::vector<ResetCount> counts;
  for (const auto& [what, count] : resets_) counts.push_back({what.first, what.second, count});
  return counts;
}

}  // namespace penstock::node::health
