// The books of usage: who has which device since when, and what came of each sample since. Pure: it is told everything, and the time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node/usage/figures.h"
#include "node/usage/part.h"
#include "node/usage/record.h"
#include "node/usage/usage.h"

namespace penstock::node::usage {

/// Now, by the clock that nobody sets, and by that of people.
struct Moment {
  base::TimePoint steady{};
  base::WallTime wall{};
};

/// What is kept of a running holder for an agent that starts later in the same boot, whose steady clock goes on.
struct Kept {
  Record record;
  base::TimePoint began{}, last_busy{};
};

/// What a holder had used before an agent ended without saying so: records have it, the page does not. That one began at nothing again,
/// since what the page had said last is not known, and counters that fall are taken for counters that began at nothing.
struct Hidden {
  std::string device, lease;
  double busy_seconds = 0, energy_joules = 0, measured_seconds = 0;
};

/// A device's counter of energy as it was read last.
struct EnergyReading {
  double joules = 0;
  base::TimePoint at{};
};

/// Not thread-safe.
class Tally {
 public:
  struct Settings {
    std::vector<std::string> labels;  ///< globs over keys of those that are shown
    base::Duration keep_ended = std::chrono::minutes(5);
    base::Duration idle_after = std::chrono::minutes(30);
    double idle_below = 0.01;  ///< utilization, 0 to 1
    // A burst of short jobs must not make the agent large.
    std::size_t most_ended = 250;     ///< of those that ended, so many are shown; records have them all
    std::size_t most_waiting = 8000;  ///< for a sample; the first of more than these are recorded without it
  };
  using ModelOf = std::function<std::string(const std::string& device)>;

  explicit Tally(ModelOf model_of) : model_of_(std::move(model_of)) {}

  void Configure(Settings settings);

  /// Who holds what from now on. What ended waits for the next sample of its device, at most kPatience.
  void Follow(std::shared_ptr<const ledger::Snapshot> ledger, Moment now);

  /// A sample of a device has come. Samples are `interval` apart; over more than a few of these nothing is said but by counters.
  void Take(const std::string& device, const Figures& figures, const std::vector<device::ProcessSample>& processes, base::Duration interval,
            Moment now);

  /// What a lease's control group has used since it was made, and its memory, now or at most.
  void SetGroup(const std::string& lease, std::optional<base::Duration> cpu, std::optional<base::Bytes> memory);

  /// Gives up waiting for samples that did not come, and forgets what was shown long enough.
  void Tick(Moment now);

  /// When Tick is due; nothing: never.
  std::optional<base::TimePoint> due() const;

  /// How many have ended and wait for a sample.
  std::size_t waiting() const { return ending_.size(); }

  /// How many hold something.
  std::size_t running() const { return running_.size(); }

  /// By lease and device, without what is hidden; of those that have ended the last ones.
  std::vector<std::shared_ptr<const HolderUsage>> Show(Moment now);
  std::uint64_t forgotten() const { return forgotten_; }

  /// Records of what has ended since the last time.
  std::vector<Record> TakeEnded() { return std::exchange(ended_records_, {}); }

  /// What is not closed yet, as it stands; for an agent that starts later, and for those who sum.
  std::vector<Kept> Keep(Moment now);
  std::map<std::string, EnergyReading> KeepEnergy() const;
  std::vector<Hidden> KeepHidden() const;

  /// What an agent before us kept, in this boot. Before the leases are taken over: each then goes on with what it had used. `hidden`: of
  /// that the page did not show; nothing: that agent did not end cleanly, and the page shows nothing of it.
  void Recall(std::vector<Kept> kept, std::map<std::string, EnergyReading> energy,
              std::optional<std::vector<Hidden>> hidden = std::vector<Hidden>());

  /// All leases have been taken over: what was recalled and has no lease any more has ended when it was last kept.
  void Settle();

  static constexpr base::Duration kPatience = std::chrono::seconds(15);

 private:
  using Key = std::pair<std::string, std::string>;  // device, lease
  struct Account {
    HolderUsage usage;  // what does not depend on the time of showing
    base::TimePoint began{}, last_busy{};
    std::optional<base::TimePoint> ended;
    std::vector<ledger::Process> processes;    // of one that has ended: what its last sample tells them by
    std::optional<double> compute;             // of its processes, as they were told last; nothing: not known
    Hidden hidden;                             // without its names
    bool cpu_hidden = false;                   // until its control group says it
    bool active = false;                       // they, or the device where it is alone on it, did something worth telling
    std::shared_ptr<const HolderUsage> shown;  // null: something has changed since
  };
  struct Device {
    std::optional<base::TimePoint> at;  // of the last sample
    base::Duration interval{};
    std::optional<EnergyReading> energy;
  };
  /// Energy that a device took, and from when to now.
  struct Taken {
    base::TimePoint begin{};
    double joules = 0;
  };
  struct Ended {
    std::shared_ptr<const HolderUsage> usage;
    base::TimePoint at{};
  };

  void Begin(const ledger::Lease& lease, Moment now);
  void End(const ledger::Lease& lease, Moment now);
  void Change(const ledger::Lease& lease);
  void Close(Account account);
  std::shared_ptr<const ledger::Lease> Wanted(ledger::Lease lease) const;
  bool TakeUp(Account& account);
  Hidden HiddenOf(const Key& key, const Kept& kept) const;
  void ForgetLike(const HolderUsage& usage);
  std::vector<Account*> On(const std::string& device);
  std::optional<Taken> TakenBy(Device& device, const Figures& figures, base::TimePoint now, bool gap);
  void ShowProcesses(const std::string& device, const std::vector<Account*>& accounts, const std::vector<device::ProcessSample>& processes);
  bool IsOutside(const std::string& device, std::int32_t pid) const;
  double OutsideCompute(const std::string& device, const std::vector<device::ProcessSample>& processes) const;
  void ShowFigures(Account& account, const Figures& figures) const;
  void CloseAll(const std::string& device);
  HolderUsage At(const Account& account, Moment now) const;
  HolderUsage WithoutHidden(HolderUsage usage, const Account& account) const;

  const ModelOf model_of_;
  Settings settings_;
  std::shared_ptr<const ledger::Snapshot> ledger_ = std::make_shared<const ledger::Snapshot>();
  std::map<std::string, Device> devices_;
  std::map<std::string, double> outside_;  // what those compute on a device who hold nothing, as it was told last
  std::map<Key, Account> running_;
  std::deque<Account> ending_;  // wait for a sample
  std::deque<Ended> ended_;
  std::vector<Record> ended_records_;
  std::map<Key, Kept> recalled_;
  std::optional<std::map<Key, Hidden>> recalled_hidden_;  // nothing: all of it
  std::uint64_t forgotten_ = 0;
};

}  // namespace penstock::node::usage
