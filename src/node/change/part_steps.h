// Takes the steps of changes that create and remove parts on demand.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "node/change/device_change.h"
#include "node/change/division_journal.h"
#include "node/change/division_run.h"
#include "node/change/divisions.h"

namespace penstock::node::change {

/// The record of a change; an empty one where that is corrupt.
PartsRecord PartsRecordOf(const DeviceChange& change);

/// Whether a part of this profile and place is what is wanted.
bool IsAt(const partition::DesiredParts& wanted, const std::string& profile,
          const std::optional<device::Placement>& placement);

/// On the control executor.
class PartSteps {
 public:
  PartSteps(base::Executor& control, const Divisions::Node& node,
            const Divisions::VendorOf& vendor_of)
      : control_(control), node_(node), vendor_of_(vendor_of) {}

  /// Removes and creates. A ChangeStep::take.
  StepResult Create(const DeviceChange& change);

  /// Finds out which parts there are, and calls `own` for those that this change has created. Waits
  /// for the driver as long as it takes: another program's parts and these could not be
  /// distinguished later.
  using Own = std::function<void(const device::Facts& part, const partition::DesiredParts& wanted)>;
  StepResult Look(const DeviceChange& change, const Own& own);

  /// The inventory shows what was seen last.
  StepResult Read(const DeviceChange& change) const;

  /// The change has ended. Returns which of the parts that it was to remove were seen last.
  std::set<std::string> Ended(const DeviceChange& change);

 private:
  struct Run {
    std::unique_ptr<DivisionRun> run;
    std::optional<base::Status> outcome = {};
    // Of the creation; what is run after that only looks.
    std::set<std::string> before = {};   // ids of parts that were there
    std::set<std::string> created = {};  // addresses
    bool unanswered = false;             // a part may have been created
    bool taken_over = false;             // by the previous agent
    base::TimePoint look_again{};
  };
  void Begin(Run& one, const inventory::Entry& device, const PartsRecord& record);
  bool Looked(Run& one, const inventory::Entry& device);

  base::Executor& control_;
  const Divisions::Node node_;
  const Divisions::VendorOf& vendor_of_;
  std::map<std::string, Run> runs_;  // by device
  base::Lifetime lifetime_;
};

}  // namespace penstock::node::change
