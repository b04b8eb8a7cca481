// Saves and restores what outlives an agent: running accounts, and the last readings of the energy
// counters.
#include <algorithm>

#include "node/usage/usage_accumulator.h"

namespace penstock::node::usage {

std::vector<Kept> UsageAccumulator::Keep(base::Timestamp now) {
  std::vector<Kept> kept;
  for (const auto& [key, account] : running_)
    kept.push_back({ToRecord(At(account, now), now.wall), account.began, account.last_busy});
  for (const Account& account : ending_)
    kept.push_back({ToRecord(At(account, now), now.wall), account.began, account.last_busy});
  for (const auto& [key, one] : recalled_) kept.push_back(one);
  return kept;
}

std::map<std::string, EnergyReading> UsageAccumulator::KeepEnergy() const {
  std::map<std::string, EnergyReading> energy;
  for (const auto& [id, device] : devices_)
    if (device.energy) energy.emplace(id, *device.energy);
  return energy;
}

std::vector<Hidden> UsageAccumulator::KeepHidden() const {
  std::vector<Hidden> all;
  const auto keep = [&all](const Account& account) {
    Hidden hidden = account.hidden;
    if (hidden.busy_seconds == 0 && hidden.energy_joules == 0 && hidden.measured_seconds == 0)
      return;
    hidden.device = account.usage.device;
    hidden.lease = account.usage.holder->id;
    all.push_back(std::move(hidden));
  };
  for (const auto& [key, account] : running_) keep(account);
  for (const Account& account : ending_) keep(account);
  for (const auto& [key, kept] : recalled_) all.push_back(HiddenOf(key, kept));
  return all;
}

Hidden UsageAccumulator::HiddenOf(const Key& key, const Kept& kept) const {
  Hidden all{.device = key.first,
             .lease = key.second,
             .busy_seconds = kept.record.busy_seconds,
             .energy_joules = kept.record.energy_joules,
             .measured_seconds = kept.record.measured_seconds};
  if (!recalled_hidden_) return all;
  const auto found = recalled_hidden_->find(key);
  return found == recalled_hidden_->end() ? Hidden{.device = key.first, .lease = key.second}
                                          : found->second;
}

void UsageAccumulator::Recall(std::vector<Kept> kept, std::map<std::string, EnergyReading> energy,
                              std::optional<std::vector<Hidden>> hidden) {
  if (hidden) {
    recalled_hidden_.emplace();
    for (Hidden& one : *hidden) recalled_hidden_->insert_or_assign(Key{one.device, one.lease}, one);
  }
  for (Kept& one : kept) {
    if (one.record.ended) {
      ended_records_.push_back(std::move(one.record));
      continue;
    }
    Key key{one.record.device, one.record.lease};
    recalled_.insert_or_assign(std::move(key), std::move(one));
  }
  for (const auto& [id, reading] : energy) devices_[id].energy = reading;
}

/// Finds a recalled account by its lease, or for a container of the kubelet, whose lease may be a
/// new one, by its names.
bool UsageAccumulator::Reopen(Account& account) {
  const ledger::Lease& lease = *account.usage.holder;
  auto found = recalled_.find({account.usage.device, lease.id});
  if (found == recalled_.end() && !lease.pod.empty())
    found = std::ranges::find_if(recalled_, [&](const auto& one) {
      const Record& record = one.second.record;
      return record.device == account.usage.device && record.slot == account.usage.slot &&
             record.allocator == lease.allocator && record.namespace_name == lease.namespace_name &&
             record.pod == lease.pod && record.container == lease.container &&
             (record.pod_uid.empty() || lease.pod_uid.empty() || record.pod_uid == lease.pod_uid);
    });
  if (found == recalled_.end()) return false;
  const Kept kept = std::move(found->second);
  account.hidden = HiddenOf(found->first, kept);
  account.cpu_hidden = !recalled_hidden_;
  recalled_.erase(found);
  account.began = kept.began;
  account.last_busy = kept.last_busy;
  HolderUsage& usage = account.usage;
  usage.since = kept.record.since;
  usage.measured_seconds = kept.record.measured_seconds;
  usage.busy_seconds = kept.record.busy_seconds;
  usage.energy_joules = kept.record.energy_joules;
  usage.memory_peak = kept.record.memory_peak;
  usage.cpu_seconds = kept.record.cpu_seconds;
  usage.host_memory_peak = kept.record.host_memory_peak;
  return true;
}

void UsageAccumulator::EndOrphans() {
  for (auto& [key, kept] : recalled_) {
    kept.record.ended = true;
    ended_records_.push_back(std::move(kept.record));
  }
  recalled_.clear();
}

}  // namespace penstock::node::usage
