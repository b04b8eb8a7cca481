// Takes the steps of changes that divide devices.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "node/change/device_change.h"
#include "node/change/division_journal.h"
#include "node/change/division_resets.h"
#include "node/change/division_run.h"
#include "node/change/divisions.h"

namespace penstock::node::change {

/// How long a device is left alone after a failure, and how often that is doubled at most (Pauses).
inline constexpr base::Duration kFirstDivisionPause = std::chrono::seconds(10);
inline constexpr int kMostDivisionDoublings = 6;

/// On the control executor. Each is a ChangeStep::take.
class DivisionSteps {
 public:
  DivisionSteps(base::Executor& control, const Divisions::Node& node,
                const Divisions::VendorOf& vendor_of);

  /// As the record says.
  StepResult Divide(const DeviceChange& change);

  /// After a failure: as it was before, as often as it takes. What is not `wanted` any more, and a
  /// device that is not there any more, end that.
  StepResult Restore(const DeviceChange& change, bool wanted);

  /// The inventory shows what was seen last.
  StepResult Read(const DeviceChange& change) const;

  void Forget(const std::string& device);

  /// What waits after a failure is tried again at once.
  void RetryNow();

  /// Whether the device was to become as before, and could not at the first attempt.
  bool FailedToRestore(const std::string& device) const;

 private:
  struct Run {
    std::unique_ptr<DivisionRun> run;
    std::string doing;
    std::optional<base::Status> outcome;
    base::TimePoint retry_at{};
    int failures = 0;
    bool back = false;  // divides the device as it was before
  };
  void Begin(Run& one, const inventory::Entry& entry, const DivisionRecord& record);
  void Ended(const std::string& id, const base::Status& outcome);

  base::Executor& control_;
  const Divisions::Node node_;
  const Divisions::VendorOf vendor_of_;
  DivisionResets resets_;
  std::map<std::string, Run> runs_;  // by device
  base::Lifetime lifetime_;
};

}  // namespace penstock::node::change
