// Judges evidence: which devices can be used, why not, and when again. Resets nothing and moves nobody.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/executor.h"
#include "device/dialect.h"
#include "node/health/status.h"
#include "node/inventory/inventory.h"

namespace penstock::node::health {

/// On the control executor. A device is healthy when it answers and nothing speaks against it. What happened once and asks for a drain or
/// more keeps it unhealthy until the driver itself says that nothing needs doing (or, with drivers that cannot say, until the device was
/// away and is back, or the driver was reloaded) and it then looks well for the probation. It is not held back for ever.
class Monitor {
 public:
  struct Options {
    base::Duration probation = std::chrono::seconds(10);
  };
  using DialectOf = std::function<const device::Dialect*(std::string_view vendor)>;

  Monitor(base::Executor& executor, inventory::Inventory& inventory, DialectOf dialect_of, Options options);
  ~Monitor();

  /// A polled look; its standing evidence replaces that of the look before.
  void OnReading(const std::string& id, const device::Reading& reading);

  /// Something happened. Returns the id of the device it is about, empty where none is known: then the reading should be repeated soon.
  std::string OnEvidence(const device::Evidence& evidence);

  /// The vendor's driver was opened anew: what its reload ends has ended.
  void OnDriverOpened(const std::string& vendor, const std::string& version);

  /// From now on, also for devices that are on probation.
  void SetProbation(base::Duration probation);

  /// What was heard, what became of it, and what was done about it. All counts are of this agent's life.
  std::vector<EvidenceCount> Counts() const;
  Statuses statuses() const { return {}; }
  std::vector<TransitionCount> Transitions() const { return {}; }
  std::vector<ResetCount> Resets() const { return {}; }
  std::vector<Notice> Notices() const { return {}; }  ///< the last 64, oldest first

 private:
  struct Trouble {
    device::Severity severity;
    std::string reason;
    bool silences = false;
    bool proven_over = false;  // the driver was reloaded, or the device was away, since
  };
  struct Tracked {
    std::map<std::pair<std::string, std::int64_t>, Trouble> happened;  // by kind and code; drain and worse
    std::optional<device::Reading> last;
    std::optional<base::TimePoint> well_since;
    bool was_unwell = false;
    base::TimerId timer = 0;
    std::map<std::pair<std::string, std::int64_t>, base::TimePoint> heard;  // to count one event once though two sources tell it
  };
  std::string IdOf(const device::Evidence& evidence) const;
  device::Verdict Judge(const std::string& id, const device::Evidence& evidence) const;
  void Count(const std::string& id, const device::Evidence& evidence, device::Severity severity);
  void Evaluate(const std::string& id, Tracked& tracked);
  std::optional<std::string> StandingTrouble(const std::string& id, const Tracked& tracked) const;
  std::optional<std::string> HappenedTrouble(const Tracked& tracked, bool driver_tells) const;
  void Set(const std::string& id, device::HealthState state, const std::string& reason);

  base::Executor& executor_;
  inventory::Inventory& inventory_;
  DialectOf dialect_of_;
  Options options_;
  std::map<std::string, Tracked> devices_;
  std::map<std::string, std::string> driver_versions_;
  std::map<std::tuple<std::string, std::string, std::int64_t>, EvidenceCount> counts_;
};

}  // namespace penstock::node::health
