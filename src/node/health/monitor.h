// Decides from evidence which devices are healthy, and why not, and when a device has recovered.
// Resets nothing and moves no workloads.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/config/node_config.h"
#include "base/executor.h"
#include "device/dialect.h"
#include "node/health/checkpoint.h"
#include "node/health/event_counter.h"
#include "node/health/health_history.h"
#include "node/health/recovery.h"
#include "node/health/status.h"
#include "node/inventory/inventory.h"

namespace penstock::node::health {

/// On the control executor. A device is healthy when it answers and no fault is known against it.
/// An event with severity drain or higher makes the device unhealthy until the fault is over. A
/// drain is over when no process uses the device. A more severe fault is over when the driver
/// itself reports that no action is needed. With drivers that cannot report this, it is over when a
/// reset is proven: the agent reset the device, the device left the driver's list, the driver was
/// reloaded, a counter that only a reset clears fell, or the device answers again after an error
/// that silences it until a reset. A device that merely did not answer for a while proves no reset.
/// After that, the device must stay without faults for its probation (recovery.h). An event that
/// names a part of the device counts against that part alone, unless it needs a reset of the whole
/// device; that is for the driver to report, and only for the event where the driver cannot.
class Monitor {
 public:
  struct Options {
    base::Duration probation = std::chrono::seconds(10);
    base::Duration probation_most = std::chrono::minutes(10);
    std::vector<api::HealthRule> policy;
    /// Whether a process or holder uses the device; empty function: never.
    std::function<bool(const std::string& id)> in_use;
  };

  Monitor(base::Executor& executor, inventory::Inventory& inventory, device::DialectOf dialect_of,
          Options options);
  ~Monitor();

  /// Processes a polled reading that began `ago` before now; its standing evidence replaces that of
  /// the previous reading. One that began before the device's latest fault is ignored.
  void OnReading(const std::string& id, const device::Reading& reading, base::Duration ago = {});

  /// Processes an event that happened `ago` before now; the caller should repeat soon the reading
  /// of the device concerned, and of those that it is a part of. Returns its id, or an empty string
  /// if it is unknown.
  std::string OnEvidence(const device::Evidence& evidence, base::Duration ago = {});

  /// Whether OnEvidence would find the device concerned.
  bool Knows(const device::Evidence& evidence) const { return !IdOf(evidence).empty(); }

  /// The vendor's driver was opened. If it was reloaded since this or the previous agent opened it,
  /// the faults that a reload ends are over.
  void OnDriverOpened(const std::string& vendor, const LoadedDriver& driver);

  /// Sets the policy and the probation times. They also apply to earlier events: an error that is
  /// now ignored no longer keeps a device unhealthy, and such a device is healthy at once. An error
  /// that was ignored before does not make a device unhealthy later.
  void Configure(const api::HealthConfig& config);

  /// Counts of evidence, transitions and resets, since this agent started.
  std::vector<EvidenceCount> Counts() const { return events_.Counts(); }
  std::vector<EvidenceCount> CountsWithin(base::Duration window) const {
    return events_.CountsSince(executor_.clock().Now() - window);
  }
  HealthStatuses statuses() const;  ///< of all devices in the inventory
  std::vector<TransitionCount> Transitions() const { return history_.Transitions(); }
  std::vector<ResetCount> Resets() const { return history_.Resets(); }
  /// Adds a notice that is about no single device.
  void Note(bool warning, const std::string& reason, const std::string& message) {
    history_.Notify(warning, "", reason, message, executor_.clock().Wall());
  }
  std::vector<Notice> Notices() const { return history_.Notices(); }  ///< the last 64, oldest first
  /// Grows when `statuses` or `Notices` may have changed although no snapshot did.
  std::uint64_t generation() const { return changes_ + history_.last_notice(); }

  // State that outlives the agent.

  /// Restores the checkpoint of the previous agent. Call before the first reading.
  void Recall(HealthCheckpoint checkpoint);
  /// The kernel's log was read up to this record.
  void SetKernelLog(std::optional<std::uint64_t> record);
  HealthCheckpoint Remember() const;
  /// Sets the callback for possible changes of Remember's result.
  void OnChange(std::function<void()> changed) { changed_ = std::move(changed); }

  // For the code that resets devices (resets.h).

  /// Whether the device is unhealthy because of a fault that a reset ends, and of no worse one.
  bool NeedsReset(const std::string& id) const;
  /// Whether the device was read since its last reset, or its last error event.
  bool HasReading(const std::string& id) const;
  /// Times of its resets and reset attempts within the last day, oldest first.
  std::vector<base::WallTime> ResetsOf(const std::string& id) const;
  /// Sets the text about its reset that is added to the reason while it is unhealthy; empty: none.
  void SetResetNote(const std::string& id, const std::string& note);
  /// Keeps devices unhealthy with the given reasons until EndReset, whatever evidence arrives.
  void BeginReset(const std::map<std::string, std::string>& reasons);
  /// The reset ended, with success or with the error in `result`. A device that was reset starts
  /// its probation.
  void EndReset(const std::vector<std::string>& ids, const base::Status& result);

 private:
  using Code = std::pair<std::string, std::int64_t>;
  struct Fault {
    device::Verdict verdict;                              // by the vendor's documentation
    device::Severity severity = device::Severity::kWarn;  // by the site's policy
    base::WallTime at{};
    bool proven_over = false;  // the driver was reloaded, or the device was reset, since
    // It happened before the agent listened: read from the kernel's log later.
    bool from_history = false;
  };
  struct Tracked {
    std::map<Code, Fault> latched;  // drain and more severe
    base::TimePoint latched_at{};   // the latest of them
    std::optional<device::Reading> last;
    Recovery recovery;
    std::string reason;  // the worst fault since it became unhealthy; an event takes precedence
                         // over its consequences, and the first event over later ones
    device::Severity worst = device::Severity::kIgnore;
    bool of_event = false;
    std::string held, note;  // see BeginReset, SetResetNote
    bool needs_reset = false;
    std::optional<base::WallTime> probation_until, remembered_since;
    std::vector<base::WallTime> resets;
    bool reports_recovery = false;  // as the last reading that reached it said
    ResetCounters counters;         // of the last reading
    ResetCounters before;   // At the last error, or soon after it: a counter below this value was
                            // cleared since.
    int set_back = 0;       // consecutive readings with a lower counter
    bool departed = false;  // gone, without a reading since
    std::vector<base::TimePoint> departures;  // within the last hour, while its driver stayed
    base::TimerId timer = 0;
  };
  /// The most important fault that is known against a device now.
  struct CurrentFault {
    device::Severity severity = device::Severity::kDrain;
    std::string reason;
    std::string advice;  // what ends it, if no other text says so
    bool hangs = false;
    bool event = false;      // an event, not only a finding of the current reading
    bool of_driver = false;  // of all devices of the driver: no single device is at fault
  };
  std::string IdOf(const device::Evidence& evidence) const;
  std::string ConcernedOf(const std::string& id, const device::Evidence& evidence,
                          device::Severity severity) const;
  device::Verdict Judge(const std::string& id, const device::Evidence& evidence) const;
  device::Severity ByPolicy(const device::Evidence& evidence, device::Severity by_vendor) const;
  void Latch(Tracked& tracked, const device::Evidence& evidence, const device::Verdict& verdict,
             device::Severity severity, base::Duration ago);
  void EndFaults(Tracked& tracked, std::optional<base::WallTime> until = {});
  void EndSilence(Tracked& tracked);
  void TakeDriverReport(Tracked& tracked);
  void DetectReset(const std::string& id, Tracked& tracked, const device::Reading& reading);
  std::optional<CurrentFault> FaultInReading(const std::string& id, const Tracked& tracked) const;
  bool IsOver(const std::string& id, const Tracked& tracked, const Fault& fault) const;
  std::vector<Concern> ConcernsOf(const std::string& id, const Tracked& tracked) const;
  std::string WarningOf(const std::string& id, const Tracked& tracked) const;
  std::optional<CurrentFault> LatchedFault(const std::string& id, const Tracked& tracked) const;
  std::optional<CurrentFault> WorstFault(const std::string& id, const Tracked& tracked) const;
  void Evaluate(const std::string& id, Tracked& tracked);
  void EvaluateHealthy(const std::string& id, Tracked& tracked);
  void EvaluateUnhealthy(const std::string& id, Tracked& tracked, const CurrentFault& against);
  std::string FlappingReason(const Tracked& tracked) const;
  void ReportReset(const std::string& id, const Tracked& tracked, const base::Status& result);
  void Repolicy(const std::string& id, Tracked& tracked, bool had_fault);
  void Set(const std::string& id, Tracked& tracked, device::HealthState state,
           const std::string& reason);
  Recovery::Terms terms() const { return {options_.probation, options_.probation_most}; }
  void Update(const inventory::Snapshot& snapshot);
  void Follow(const inventory::Entry& entry, const inventory::Snapshot& snapshot);
  void Return(Tracked& tracked);
  void Changed() {
    ++changes_;
    if (changed_) changed_();
  }

  base::Executor& executor_;
  inventory::Inventory& inventory_;
  device::DialectOf dialect_of_;
  Options options_;
  std::map<std::string, Tracked> devices_;
  // By vendor, as opened last by this or the previous agent.
  std::map<std::string, LoadedDriver> drivers_;
  std::optional<std::uint64_t> kernel_log_;
  EventCounter events_;
  HealthHistory history_;
  std::uint64_t seen_facts_ = 0, changes_ = 0;
  std::function<void()> changed_;
  base::Subscription on_inventory_;
};

}  // namespace penstock::node::health
