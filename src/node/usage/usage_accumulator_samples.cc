// Attributes the time since the previous sample of a device to the holders of that time.
#include <algorithm>

#include "node/usage/usage_accumulator.h"

namespace penstock::node::usage {
namespace {

constexpr int kFew = 3;  // a gap of at most so many intervals is still attributed

std::optional<double> Ratio(std::optional<double> percent) {
  return percent ? std::optional(std::clamp(*percent / 100, 0.0, 1.0)) : std::nullopt;
}

ProcessUsage ToUsage(const device::ProcessSample& sample, const ledger::Process* known) {
  ProcessUsage usage{.pid = sample.pid,
                     .memory = sample.memory,
                     .compute = Ratio(sample.compute),
                     .memory_copy = Ratio(sample.memory_copy),
                     .encoder = Ratio(sample.encoder),
                     .decoder = Ratio(sample.decoder)};
  if (known == nullptr) return usage;
  usage.user = known->user;
  usage.command = known->command;
  return usage;
}

const ledger::Process* FindProcess(const std::vector<ledger::Process>& processes, pid_t pid) {
  const auto found =
      std::ranges::find_if(processes, [pid](const auto& one) { return one.pid == pid; });
  return found == processes.end() ? nullptr : &*found;
}

bool HasValues(const DeviceActivity& activity) {
  return activity.utilization || activity.watts || activity.joules || activity.memory ||
         activity.processes;
}

/// The utilization of a holder of a shared device: the sum over its processes. Nothing if the
/// driver does not report their compute.
std::optional<double> ComputeOf(const std::vector<ProcessUsage>& processes) {
  double sum = 0;
  bool reported = processes.empty();
  for (const ProcessUsage& process : processes) {
    reported = reported || process.compute;
    sum += process.compute.value_or(0);
  }
  return reported ? std::optional(std::min(sum, 1.0)) : std::nullopt;
}

bool IsActive(const ProcessUsage& process, double least) {
  return std::max({process.compute.value_or(0), process.encoder.value_or(0),
                   process.decoder.value_or(0)}) >= least;
}

/// Whether a counter can have grown so much in that time.
bool IsPlausible(double joules, base::Duration time, double most_watts) {
  return joules >= 0 && (most_watts <= 0 || joules <= most_watts * (base::Seconds(time) + 1));
}

}  // namespace

std::vector<UsageAccumulator::Account*> UsageAccumulator::On(const std::string& device) {
  std::vector<Account*> accounts;
  for (auto one = running_.lower_bound({device, ""});
       one != running_.end() && one->first.first == device; ++one)
    accounts.push_back(&one->second);
  for (Account& account : ending_)
    if (account.usage.device == device) accounts.push_back(&account);
  return accounts;
}

void UsageAccumulator::Take(const std::string& device, const DeviceActivity& activity,
                            const std::vector<device::ProcessSample>& processes,
                            base::Duration interval, base::Timestamp now) {
  const auto accounts = On(device);
  for (Account* account : accounts) account->shown = nullptr;
  if (!HasValues(activity)) {  // unknown; the next sample with values covers this time too
    for (Account* account : accounts) account->usage.utilization.reset();
    return;
  }
  Device& known = devices_[device];
  const base::TimePoint begin = known.at.value_or(now.steady);
  const bool gap = now.steady - begin > kFew * std::max(interval, known.interval);
  if (activity.processes) {
    ShowProcesses(device, accounts, processes);
    outside_[device] = OutsideCompute(device, processes);
  }

  std::vector<Occupancy> occupancies;
  bool shared = false;
  for (Account* account : accounts) {
    occupancies.push_back(
        {account->began, account->ended.value_or(now.steady), account->compute.value_or(0)});
    shared = shared || account->usage.shared;
    ShowActivity(*account, activity);
    const auto utilization = account->usage.shared
                                 ? (activity.processes ? account->compute : std::nullopt)
                                 : activity.utilization;
    if (utilization && !gap) {
      const double time = base::Seconds(Overlap(begin, now.steady, occupancies.back()));
      account->usage.busy_seconds += *utilization * time;
      account->usage.measured_seconds += time;
    }
    if (utilization.value_or(0) >= settings_.idle_below || account->active)
      account->last_busy = occupancies.back().to;
  }
  if (const auto taken = TakenBy(known, activity, now.steady, gap)) {
    const auto parts =
        Apportion(taken->begin, now.steady, occupancies, shared ? outside_[device] : 0);
    for (std::size_t i = 0; i < accounts.size(); ++i)
      accounts[i]->usage.energy_joules += parts[i] * taken->joules;
  }
  known.at = now.steady;
  known.interval = interval;
  CloseAll(device);
}

/// A counter covers all the time since its last reading, however long; power only covers the
/// present.
std::optional<UsageAccumulator::Taken> UsageAccumulator::TakenBy(Device& device,
                                                                 const DeviceActivity& activity,
                                                                 base::TimePoint now, bool gap) {
  const auto before = device.energy;
  if (activity.joules) {
    device.energy = {*activity.joules, now};
    const double joules = before ? *activity.joules - before->joules : -1;
    if (before && IsPlausible(joules, now - before->at, activity.most_watts))
      return Taken{before->at, joules};
  } else if (before) {
    if (now - before->at <= kFew * device.interval)
      return std::nullopt;  // the next reading of the counter will cover this time too
    device.energy.reset();
  }
  if (!activity.watts || gap || !device.at) return std::nullopt;
  return Taken{*device.at, *activity.watts * base::Seconds(now - *device.at)};
}

void UsageAccumulator::ShowProcesses(const std::string& device,
                                     const std::vector<Account*>& accounts,
                                     const std::vector<device::ProcessSample>& processes) {
  for (Account* account : accounts) account->usage.processes.clear();
  for (const device::ProcessSample& process : processes) {
    Account* owner = nullptr;
    const ledger::Process* known = nullptr;
    // Of two processes with the same id, the one that started later is alive.
    for (Account* account : accounts) {
      const ledger::Process* one = FindProcess(
          account->ended ? account->processes : account->usage.holder->processes, process.pid);
      if (one == nullptr || (known != nullptr && one->start <= known->start)) continue;
      owner = account;
      known = one;
    }
    if (owner == nullptr && !IsOutside(device, process.pid)) {
      const auto alone = std::ranges::find_if(
          accounts, [](Account* one) { return !one->usage.shared && !one->ended; });
      if (alone != accounts.end()) owner = *alone;
    }
    if (owner != nullptr) owner->usage.processes.push_back(ToUsage(process, known));
  }
  for (Account* account : accounts) {
    const auto& own = account->usage.processes;
    account->compute = ComputeOf(own);
    account->active = std::ranges::any_of(
        own, [this](const ProcessUsage& one) { return IsActive(one, settings_.idle_below); });
    if (account->ended) account->usage.processes.clear();
  }
}

/// True also for a process that only uses graphics: it belongs to no holder.
bool UsageAccumulator::IsOutside(const std::string& device, std::int32_t pid) const {
  for (const auto* others : {&ledger_->outside, &ledger_->graphics})
    if (const auto found = others->find(device);
        found != others->end() && FindProcess(found->second, pid) != nullptr)
      return true;
  return false;
}

double UsageAccumulator::OutsideCompute(const std::string& device,
                                        const std::vector<device::ProcessSample>& processes) const {
  double sum = 0;
  for (const device::ProcessSample& process : processes)
    if (IsOutside(device, process.pid)) sum += Ratio(process.compute).value_or(0);
  return sum;
}

void UsageAccumulator::ShowActivity(Account& account, const DeviceActivity& activity) const {
  if (account.ended) return;
  HolderUsage& usage = account.usage;
  if (!usage.shared) {
    usage.utilization = activity.utilization;
    if (activity.memory) usage.memory_used = activity.memory;
  } else if (activity.processes) {
    usage.utilization = account.compute;
    base::Bytes memory;
    for (const ProcessUsage& process : usage.processes)
      memory.count += process.memory.value_or(base::Bytes{}).count;
    usage.memory_used = memory;
  }
  usage.memory_peak = std::max(usage.memory_peak, usage.memory_used.value_or(base::Bytes{}));
}

}  // namespace penstock::node::usage
