// Keeps one account per lease and device, and closes it with the first sample after the lease's
// end.
#include "node/usage/usage_accumulator.h"

#include <algorithm>
#include <tuple>

#include "base/core/strings.h"

namespace penstock::node::usage {
namespace {

/// In order, without repetitions.
std::vector<std::string> DevicesOf(const ledger::Lease& lease) {
  std::vector<std::string> devices;
  for (const ledger::Slot& slot : lease.slots)
    if (std::ranges::find(devices, slot.device) == devices.end()) devices.push_back(slot.device);
  return devices;
}

/// The lease of an ended holder, as it is recorded and shown.
std::shared_ptr<const ledger::Lease> WithoutProcesses(
    const std::shared_ptr<const ledger::Lease>& lease) {
  if (lease->processes.empty()) return lease;
  ledger::Lease bare = *lease;
  bare.processes = {};
  return std::make_shared<const ledger::Lease>(std::move(bare));
}

/// Keeps what identifies the processes in samples.
std::vector<ledger::Process> WithoutNames(const std::vector<ledger::Process>& processes) {
  std::vector<ledger::Process> bare;
  bare.reserve(processes.size());
  for (const ledger::Process& process : processes)
    bare.push_back({.pid = process.pid, .start = process.start, .user = {}, .command = {}});
  return bare;
}

bool IsPod(const ledger::Lease& lease) { return !lease.pod.empty(); }

auto IdentityOf(const ledger::Lease& lease) {
  return std::tie(lease.allocator, lease.namespace_name, lease.pod, lease.container);
}

}  // namespace

void UsageAccumulator::Configure(Settings settings) {
  const bool labels = settings.labels != settings_.labels;
  settings_ = std::move(settings);
  if (!labels) return;
  for (const ledger::Lease& lease : ledger_->leases) Change(lease);
}

void UsageAccumulator::Follow(std::shared_ptr<const ledger::Snapshot> ledger, base::Timestamp now) {
  const auto before = std::exchange(ledger_, std::move(ledger));
  auto was = before->leases.begin();
  auto is = ledger_->leases.begin();
  while (was != before->leases.end() || is != ledger_->leases.end()) {
    if (is == ledger_->leases.end() || (was != before->leases.end() && was->id < is->id)) {
      End(*was++, now);
    } else if (was == before->leases.end() || is->id < was->id) {
      Begin(*is++, now);
    } else {
      if (was.shared() != is.shared() && *was != *is) Change(*is);
      ++was, ++is;
    }
  }
}

std::shared_ptr<const ledger::Lease> UsageAccumulator::Wanted(ledger::Lease lease) const {
  std::erase_if(lease.labels, [this](const auto& label) {
    return std::ranges::none_of(settings_.labels, [&](const std::string& glob) {
      return base::GlobMatch(glob, label.first);
    });
  });
  return std::make_shared<const ledger::Lease>(std::move(lease));
}

void UsageAccumulator::Begin(const ledger::Lease& lease, base::Timestamp now) {
  const auto holder = Wanted(lease);
  for (const std::string& device : DevicesOf(lease)) {
    const auto of_device = [&](const ledger::Slot& slot) { return slot.device == device; };
    const ledger::Slot& slot = *std::ranges::find_if(lease.slots, of_device);
    Account account;
    account.usage = {.holder = holder,
                     .device = device,
                     .model = model_of_(device),
                     .slot = slot.id,
                     .slots = static_cast<int>(std::ranges::count_if(lease.slots, of_device)),
                     .shape = slot.shape,
                     .shared = slot.id != slot.device,
                     .since = lease.since};
    // A restored lease began before this agent; only the wall clock says when.
    account.began = now.steady - std::max(now.wall - lease.since, base::Duration::zero());
    account.last_busy = account.began;
    (void)Reopen(account);
    ForgetLike(account.usage);
    running_.insert_or_assign(Key{device, lease.id}, std::move(account));
  }
}

/// A container that has started again is a new holder with the same name: only one of the two can
/// be shown.
void UsageAccumulator::ForgetLike(const HolderUsage& usage) {
  if (!IsPod(*usage.holder)) return;
  std::erase_if(ended_, [&](const Ended& one) {
    return one.usage->device == usage.device && IsPod(*one.usage->holder) &&
           IdentityOf(*one.usage->holder) == IdentityOf(*usage.holder);
  });
}

void UsageAccumulator::Change(const ledger::Lease& lease) {
  const auto holder = Wanted(lease);
  for (const std::string& device : DevicesOf(lease)) {
    const auto found = running_.find({device, lease.id});
    if (found == running_.end()) continue;
    const bool named = IsPod(*holder) && !IsPod(*found->second.usage.holder);
    found->second.usage.holder = holder;
    found->second.shown = nullptr;
    if (named) ForgetLike(found->second.usage);
  }
}

/// Thousands may wait for a sample: to save memory, only those that are shown keep their published
/// copy.
void UsageAccumulator::End(const ledger::Lease& lease, base::Timestamp now) {
  std::shared_ptr<const ledger::Lease> holder;
  for (const std::string& device : DevicesOf(lease)) {
    auto found = running_.extract({device, lease.id});
    if (!found) continue;
    Account& account = found.mapped();
    account.usage.until = now.wall;
    account.ended = now.steady;
    account.processes = WithoutNames(account.usage.holder->processes);
    if (!holder) holder = WithoutProcesses(account.usage.holder);
    account.usage.holder = holder;
    account.usage.processes = {};
    account.usage.memory_used.reset();
    account.usage.utilization.reset();
    account.shown = nullptr;
    ending_.push_back(std::move(account));
    if (ending_.size() > settings_.most_ended)
      ending_[ending_.size() - settings_.most_ended - 1].shown = nullptr;
    if (ending_.size() > settings_.most_waiting) {
      Close(std::move(ending_.front()));
      ending_.pop_front();
    }
  }
}

void UsageAccumulator::Close(Account account) {
  const base::Timestamp end{*account.ended, *account.usage.until};
  HolderUsage all = At(account, end);
  ended_records_.push_back(ToRecord(all, end.wall));
  auto usage = std::make_shared<const HolderUsage>(WithoutHidden(std::move(all), account));
  const bool again = IsPod(*usage->holder) && std::ranges::any_of(running_, [&](const auto& one) {
                       return one.first.first == usage->device &&
                              IdentityOf(*one.second.usage.holder) == IdentityOf(*usage->holder);
                     });
  if (again || settings_.keep_ended <= base::Duration::zero()) return;
  const auto place = std::ranges::upper_bound(ended_, *account.ended, {}, &Ended::at);
  ended_.insert(place, {std::move(usage), *account.ended});
  for (; ended_.size() > settings_.most_ended; ++forgotten_) ended_.pop_front();
}

void UsageAccumulator::CloseAll(const std::string& device) {
  auto left = ending_.begin();
  for (auto one = ending_.begin(); one != ending_.end(); ++one) {
    if (one->usage.device == device)
      Close(std::move(*one));
    else if (left++ != one)
      *std::prev(left) = std::move(*one);
  }
  ending_.erase(left, ending_.end());
}

void UsageAccumulator::Tick(base::Timestamp now) {
  while (!ending_.empty() && *ending_.front().ended + kPatience <= now.steady) {
    Close(std::move(ending_.front()));
    ending_.pop_front();
  }
  while (!ended_.empty() && ended_.front().at + settings_.keep_ended <= now.steady)
    ended_.pop_front();
}

std::optional<base::TimePoint> UsageAccumulator::due() const {
  std::optional<base::TimePoint> due;
  if (!ending_.empty()) due = *ending_.front().ended + kPatience;
  if (!ended_.empty()) {
    const auto forget = ended_.front().at + settings_.keep_ended;
    due = std::min(due.value_or(forget), forget);
  }
  return due;
}

void UsageAccumulator::SetGroup(const std::string& lease, std::optional<base::Duration> cpu,
                                std::optional<base::Bytes> memory) {
  const auto set = [&](Account& account) {
    HolderUsage& usage = account.usage;
    if (cpu) account.cpu_hidden = false;
    if (cpu) usage.cpu_seconds = std::max(usage.cpu_seconds.value_or(0), base::Seconds(*cpu));
    if (memory)
      usage.host_memory_peak = std::max(usage.host_memory_peak.value_or(base::Bytes{}), *memory);
    account.shown = nullptr;
  };
  if (const ledger::Lease* held = ledger_->FindLease(lease))
    for (const std::string& device : DevicesOf(*held))
      if (const auto found = running_.find({device, lease}); found != running_.end())
        set(found->second);
  for (Account& account : ending_)
    if (account.usage.holder->id == lease) set(account);
}

HolderUsage UsageAccumulator::At(const Account& account, base::Timestamp now) const {
  HolderUsage usage = account.usage;
  const base::TimePoint at = account.ended.value_or(now.steady);
  usage.seconds = base::Seconds(at - account.began);
  usage.last_busy = now.wall - std::chrono::duration_cast<base::WallTime::duration>(
                                   now.steady - account.last_busy);
  usage.idle =
      !account.ended && usage.utilization && now.steady - account.last_busy >= settings_.idle_after;
  return usage;
}

HolderUsage UsageAccumulator::WithoutHidden(HolderUsage usage, const Account& account) const {
  usage.busy_seconds -= account.hidden.busy_seconds;
  usage.energy_joules -= account.hidden.energy_joules;
  usage.measured_seconds -= account.hidden.measured_seconds;
  if (account.cpu_hidden) usage.cpu_seconds.reset();
  return usage;
}

std::vector<std::shared_ptr<const HolderUsage>> UsageAccumulator::Show(base::Timestamp now) {
  std::vector<std::shared_ptr<const HolderUsage>> all;
  const auto show = [&](Account& account) {
    if (!account.shown)
      account.shown = std::make_shared<const HolderUsage>(WithoutHidden(At(account, now), account));
    all.push_back(account.shown);
  };
  for (auto& [key, account] : running_) show(account);
  const std::size_t waiting = std::min(ending_.size(), settings_.most_ended);
  for (std::size_t i = ending_.size() - waiting; i < ending_.size(); ++i) show(ending_[i]);
  const std::size_t closed = std::min(ended_.size(), settings_.most_ended - waiting);
  for (std::size_t i = ended_.size() - closed; i < ended_.size(); ++i)
    all.push_back(ended_[i].usage);
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) {
    return std::tie(a->holder->id, a->device) < std::tie(b->holder->id, b->device);
  });
  return all;
}

}  // namespace penstock::node::usage
