// What outlives an agent: running accounts, and how far the counters of energy had come.
#include <algorithm>

#include "node/usage/tally.h"

namespace penstock::node::usage {

std::vector<Kept> Tally::Keep(Moment now) {
  std::vector<Kept> kept;
  for (const auto& [key, account] : running_) kept.push_back({ToRecord(At(account, now), now.wall), account.began, account.last_busy});
  for (const Account& account : ending_) kept.push_back({ToRecord(At(account, now), now.wall), account.began, account.last_busy});
  for (const auto& [key, one] : recalled_) kept.push_back(one);
  return kept;
}

std::map<std::string, EnergyReading> Tally::KeepEnergy() const {
  std::map<std::string, EnergyReading> energy;
  for (const auto& [id, device] : devices_)
    if (device.energy) energy.emplace(id, *device.energy);
  return energy;
}

void Tally::Recall(std::vector<Kept> kept, std::map<std::string, EnergyReading> energy) {
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

/// By its lease; a container of the kubelet's may have another lease now, and is known by its names.
bool Tally::TakeUp(Account& account) {
  const ledger::Lease& lease = *account.usage.holder;
  auto found = recalled_.find({account.usage.device, lease.id});
  if (found == recalled_.end() && !lease.pod.empty())
    found = std::find_if(recalled_.begin(), recalled_.end(), [&](const auto& one) {
      const Record& record = one.second.record;
      return record.device == account.usage.device && record.slot == account.usage.slot && record.door == lease.door &&
             record.namespace_name == lease.namespace_name && record.pod == lease.pod && record.container == lease.container &&
             (record.pod_uid.empty() || lease.pod_uid.empty() || record.pod_uid == lease.pod_uid);
    });
  if (found == recalled_.end()) return false;
  const Kept kept = std::move(found->second);
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

void Tally::Settle() {
  for (auto& [key, kept] : recalled_) {
    kept.record.ended = true;
    ended_records_.push_back(std::move(kept.record));
  }
  recalled_.clear();
}

}  // namespace penstock::node::usage
