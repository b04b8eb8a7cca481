// Judges evidence: which devices can be used, why not, and when again. Resets nothing and moves nobody.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/node_config.h"
#include "base/executor.h"
#include "device/dialect.h"
#include "node/health/chronicle.h"
#include "node/health/hearing.h"
#include "node/health/memory.h"
#include "node/health/recovery.h"
#include "node/health/status.h"
#include "node/inventory/inventory.h"

namespace penstock::node::health {

/// On the control executor. A device is healthy when it answers and nothing speaks against it. What happened once and asks for a drain or
/// more keeps it unhealthy until it is over: a drain when nobody works on the device; more than that when the driver itself says that
/// nothing needs doing, or, with drivers that cannot say, when a reset is proven: we reset it, it left the driver's list of devices, the
/// driver was reloaded, a counter that only a reset sets back fell, or what had silenced it has ended. That it did not answer for a time
/// proves nothing. Then the device must look well for its probation (recovery.h).
class Monitor {
 public:
  struct Options {
    base::Duration probation = std::chrono::seconds(10);
    base::Duration probation_most = std::chrono::minutes(10);
    std::vector<api::HealthRule> policy;
    std::function<bool(const std::string& id)> in_use;  ///< whether somebody works on the device; empty: nobody ever does
  };
  using DialectOf = std::function<const device::Dialect*(std::string_view vendor)>;

  Monitor(base::Executor& executor, inventory::Inventory& inventory, DialectOf dialect_of, Options options);
  ~Monitor();

  /// A polled look; its standing evidence replaces that of the look before.
  void OnReading(const std::string& id, const device::Reading& reading);

  /// Something happened, `ago` before now: then the reading should be repeated soon. Returns the id of the device it is about, empty where
  /// none is known.
  std::string OnEvidence(const device::Evidence& evidence, base::Duration ago = {});

  /// Whether OnEvidence knows the device that this is about.
  bool Knows(const device::Evidence& evidence) const { return !IdOf(evidence).empty(); }

  /// The vendor's driver was opened anew. Where it was reloaded since it was opened last, by this agent or the one before, what a reload
  /// ends has ended.
  void OnDriverOpened(const std::string& vendor, const LoadedDriver& driver);

  /// Policy and times from now on, also for what has already happened: an error that is ignored from now on holds no device back any more,
  /// and such a device is used again at once. An error that was ignored before is not held against anybody afterwards.
  void Configure(const api::HealthConfig& config);

  /// What was heard, what became of it, and what was done about it. All counts are of this agent's life.
  std::vector<EvidenceCount> Counts() const { return hearing_.Counts(); }
  std::vector<EvidenceCount> CountsWithin(base::Duration window) const { return hearing_.CountsSince(executor_.clock().Now() - window); }
  Statuses statuses() const;  ///< of all devices of the inventory
  std::vector<TransitionCount> Transitions() const { return chronicle_.Transitions(); }
  std::vector<ResetCount> Resets() const { return chronicle_.Resets(); }
  std::vector<Notice> Notices() const { return chronicle_.Notices(); }  ///< the last 64, oldest first

  // What outlives the agent.

  /// What an agent before us knew. Before the devices are looked at.
  void Recall(Memory memory);
  /// The kernel's log was read up to this record.
  void SetKernelLog(std::optional<std::uint64_t> record);
  Memory Remember() const;
  /// Called after what Remember returns may have changed.
  void OnChange(std::function<void()> changed) { changed_ = std::move(changed); }

  // For those who reset devices (resets.h).

  /// Whether it is unhealthy for something that a reset ends, and nothing worse.
  bool NeedsReset(const std::string& id) const;
  /// When it was reset within the last day, or should have been, oldest first.
  std::vector<base::WallTime> ResetsOf(const std::string& id) const;
  /// What is to be said of its reset while it is unhealthy; empty: nothing.
  void SetResetNote(const std::string& id, const std::string& note);
  /// Keeps devices unhealthy, whatever is heard of them, until EndReset: reason for each.
  void BeginReset(const std::map<std::string, std::string>& reasons);
  /// They were reset, or not: then `result` says why. Nothing was tried where it is kCancelled. A device that was reset must look well for
  /// its probation.
  void EndReset(const std::vector<std::string>& ids, const base::Status& result);

 private:
  using Code = std::pair<std::string, std::int64_t>;
  struct Trouble {
    device::Verdict verdict;                              // by the vendor's documentation
    device::Severity severity = device::Severity::kWarn;  // by the site's policy
    base::WallTime at{};
    bool proven_over = false;   // the driver was reloaded, or the device was reset, since
    bool from_history = false;  // nobody listened when it happened: read in the kernel's log later
  };
  struct Tracked {
    std::map<Code, Trouble> happened;  // drain and worse
    std::optional<device::Reading> last;
    Recovery recovery;
    std::string reason;  // the worst of this spell, an event rather than what follows from it
    device::Severity worst = device::Severity::kIgnore;
    bool of_event = false;
    std::string held, note;  // see BeginReset, SetResetNote
    bool needs_reset = false;
    std::optional<base::WallTime> probation_until, remembered_since;
    std::vector<base::WallTime> resets;
    Counters counters;                        // as it answered last
    Counters before;                          // when the last trouble happened, or soon after: what is less than that was set back since
    int set_back = 0;                         // readings in a row that say so
    bool away = false;                        // gone, and not looked at since
    std::vector<base::TimePoint> departures;  // within the last hour, without its driver
    base::TimerId timer = 0;
  };
  /// What speaks against a device now.
  struct Against {
    device::Severity severity = device::Severity::kDrain;
    std::string reason;
    std::string advice;  // what ends it, where that is not said elsewhere
    bool hangs = false;
    bool event = false;      // it happened, and is not only what a look shows
    bool of_driver = false;  // of all its driver's devices: none of them is to blame
  };
  std::string IdOf(const device::Evidence& evidence) const;
  device::Verdict Judge(const std::string& id, const device::Evidence& evidence) const;
  device::Severity ByPolicy(const device::Evidence& evidence, device::Severity by_vendor) const;
  void Hold(Tracked& tracked, const device::Evidence& evidence, const device::Verdict& verdict, device::Severity severity,
            base::Duration ago);
  void EndTroubles(Tracked& tracked, std::optional<base::WallTime> until = {});
  void EndSilence(Tracked& tracked);
  void TakeDriversWord(Tracked& tracked);
  void LookForReset(const std::string& id, Tracked& tracked, const device::Reading& reading);
  std::optional<Against> Standing(const std::string& id, const Tracked& tracked) const;
  bool IsOver(const std::string& id, const Tracked& tracked, const Trouble& trouble) const;
  std::vector<Concern> ConcernsOf(const std::string& id, const Tracked& tracked) const;
  std::optional<Against> Happened(const std::string& id, const Tracked& tracked) const;
  std::optional<Against> Speaks(const std::string& id, const Tracked& tracked) const;
  void Evaluate(const std::string& id, Tracked& tracked);
  void EvaluateWell(const std::string& id, Tracked& tracked);
  void EvaluateUnwell(const std::string& id, Tracked& tracked, const Against& against);
  std::string Restless(const Tracked& tracked) const;
  void TellReset(const std::string& id, const Tracked& tracked, const base::Status& result);
  void Repolicy(const std::string& id, Tracked& tracked, bool spoke);
  void Set(const std::string& id, Tracked& tracked, device::HealthState state, const std::string& reason);
  Recovery::Terms terms() const { return {options_.probation, options_.probation_most}; }
  void See(const inventory::Snapshot& snapshot);
  void Follow(const inventory::Entry& entry, const inventory::Snapshot& snapshot);
  void Return(Tracked& tracked);
  void Changed() const {
    if (changed_) changed_();
  }

  base::Executor& executor_;
  inventory::Inventory& inventory_;
  DialectOf dialect_of_;
  Options options_;
  std::map<std::string, Tracked> devices_;
  std::map<std::string, LoadedDriver> drivers_;  // by vendor, as opened last, by us or the agent before
  std::optional<std::uint64_t> kernel_log_;
  Hearing hearing_;
  Chronicle chronicle_;
  std::uint64_t seen_facts_ = 0;
  std::function<void()> changed_;
  base::Subscription on_inventory_;
};

}  // namespace penstock::node::health
