// Accumulates the usage of holders from samples: which lease has which device since when, and what
// each sample adds to it. Pure: the caller passes all inputs and the time.
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

#include "node/usage/apportion.h"
#include "node/usage/device_activity.h"
#include "node/usage/record.h"
#include "node/usage/usage.h"

namespace penstock::node::usage {

/// The state of a running holder that a later agent restores within the same boot, in which the
/// steady clock continues.
struct Kept {
  Record record;
  base::TimePoint began{}, last_busy{};
};

/// What a holder had used before an agent ended uncleanly. Records contain this usage; the metrics
/// page does not. The page started at zero again, because its last values are unknown and scrapers
/// take a counter that falls for one that restarted at zero.
struct Hidden {
  std::string device, lease;
  double busy_seconds = 0, energy_joules = 0, measured_seconds = 0;
};

/// The last reading of a device's energy counter.
struct EnergyReading {
  double joules = 0;
  base::TimePoint at{};
};

/// Not thread-safe.
class UsageAccumulator {
 public:
  struct Settings {
    std::vector<std::string> labels;  ///< globs over the keys of the labels that are shown
    base::Duration keep_ended = std::chrono::minutes(5);
    base::Duration idle_after = std::chrono::minutes(30);
    double idle_below = 0.01;  ///< utilization, 0 to 1
    // Limits the memory that a burst of short jobs takes.
    /// The most ended holders that are shown; records contain all.
    std::size_t most_ended = 250;
    /// The most ended holders that wait for a sample; beyond that the oldest are recorded without
    /// it.
    std::size_t most_waiting = 8000;
  };
  using ModelOf = std::function<std::string(const std::string& device)>;

  explicit UsageAccumulator(ModelOf model_of) : model_of_(std::move(model_of)) {}

  void Configure(Settings settings);

  /// Sets the current leases. A holder that ended waits for the next sample of its device, at most
  /// kPatience.
  void Follow(std::shared_ptr<const ledger::Snapshot> ledger, base::Timestamp now);

  /// Adds a sample of a device. Samples are `interval` apart; a gap of more than a few intervals is
  /// covered only by counters.
  void Take(const std::string& device, const DeviceActivity& activity,
            const std::vector<device::ProcessSample>& processes, base::Duration interval,
            base::Timestamp now);

  /// Sets the CPU time that a lease's control group has used since its creation, and its memory,
  /// current or peak.
  void SetGroup(const std::string& lease, std::optional<base::Duration> cpu,
                std::optional<base::Bytes> memory);

  /// Stops waiting for samples that did not come, and drops ended holders after their time.
  void Tick(base::Timestamp now);

  /// When the next Tick is due; nothing: no Tick is needed.
  std::optional<base::TimePoint> due() const;

  /// Number of ended holders that wait for a sample.
  std::size_t waiting() const { return ending_.size(); }

  /// Number of running holders.
  std::size_t running() const { return running_.size(); }

  /// All running holders and the latest ended ones, by lease and device, without their hidden
  /// usage.
  std::vector<std::shared_ptr<const HolderUsage>> Show(base::Timestamp now);
  std::uint64_t forgotten() const { return forgotten_; }

  /// Returns the records of the holders that ended since the last call.
  std::vector<Record> TakeRecords() { return std::exchange(ended_records_, {}); }

  /// The current state of all open accounts, for a later agent and for sums.
  std::vector<Kept> Keep(base::Timestamp now);
  std::map<std::string, EnergyReading> KeepEnergy() const;
  std::vector<Hidden> KeepHidden() const;

  /// Restores what the previous agent kept in this boot. Call before the leases are restored; each
  /// of them then continues with its earlier usage. `hidden`: the part of the usage that the page
  /// did not show; nothing: that agent did not end cleanly, and the page shows none of its usage.
  void Recall(std::vector<Kept> kept, std::map<std::string, EnergyReading> energy,
              std::optional<std::vector<Hidden>> hidden = std::vector<Hidden>());

  /// Call when all leases are restored: recalled holders without a lease ended when they were last
  /// kept.
  void EndOrphans();

  static constexpr base::Duration kPatience = std::chrono::seconds(15);

 private:
  using Key = std::pair<std::string, std::string>;  // device, lease
  struct Account {
    HolderUsage usage;  // the part that does not depend on the current time
    base::TimePoint began{}, last_busy{};
    std::optional<base::TimePoint> ended;
    // Of an ended holder: the processes by which its last sample is attributed.
    std::vector<ledger::Process> processes;
    std::optional<double> compute;  // of its processes, in the last sample; nothing: unknown
    Hidden hidden;                  // without device and lease
    bool cpu_hidden = false;        // until its control group was read
    // Its processes, or the device if it is alone on it, were active.
    bool active = false;
    std::shared_ptr<const HolderUsage> shown;  // null: changed since
  };
  struct Device {
    std::optional<base::TimePoint> at;  // time of the last sample
    base::Duration interval{};
    std::optional<EnergyReading> energy;
  };
  /// Energy that a device consumed from `begin` until now.
  struct Taken {
    base::TimePoint begin{};
    double joules = 0;
  };
  struct Ended {
    std::shared_ptr<const HolderUsage> usage;
    base::TimePoint at{};
  };

  void Begin(const ledger::Lease& lease, base::Timestamp now);
  void End(const ledger::Lease& lease, base::Timestamp now);
  void Change(const ledger::Lease& lease);
  void Close(Account account);
  std::shared_ptr<const ledger::Lease> Wanted(ledger::Lease lease) const;
  bool Reopen(Account& account);
  Hidden HiddenOf(const Key& key, const Kept& kept) const;
  void ForgetLike(const HolderUsage& usage);
  std::vector<Account*> On(const std::string& device);
  std::optional<Taken> TakenBy(Device& device, const DeviceActivity& activity, base::TimePoint now,
                               bool gap);
  void ShowProcesses(const std::string& device, const std::vector<Account*>& accounts,
                     const std::vector<device::ProcessSample>& processes);
  bool IsOutside(const std::string& device, std::int32_t pid) const;
  double OutsideCompute(const std::string& device,
                        const std::vector<device::ProcessSample>& processes) const;
  void ShowActivity(Account& account, const DeviceActivity& activity) const;
  void CloseAll(const std::string& device);
  HolderUsage At(const Account& account, base::Timestamp now) const;
  HolderUsage WithoutHidden(HolderUsage usage, const Account& account) const;

  const ModelOf model_of_;
  Settings settings_;
  std::shared_ptr<const ledger::Snapshot> ledger_ = std::make_shared<const ledger::Snapshot>();
  std::map<std::string, Device> devices_;
  // The compute of processes outside these holders, in the last sample.
  std::map<std::string, double> outside_;
  std::map<Key, Account> running_;
  std::deque<Account> ending_;  // waiting for a sample
  std::deque<Ended> ended_;     // by `at`
  std::vector<Record> ended_records_;
  std::map<Key, Kept> recalled_;
  std::optional<std::map<Key, Hidden>> recalled_hidden_;  // nothing: all usage is hidden
  std::uint64_t forgotten_ = 0;
};

}  // namespace penstock::node::usage
