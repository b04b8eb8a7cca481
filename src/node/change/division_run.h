// Divides one device as desired: looks at it, plans, takes the steps of the plan through its
// driver, and looks again.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/core/result.h"
#include "base/lifetime.h"
#include "device/backend.h"
#include "node/partition/division.h"
#include "node/partition/plan.h"

namespace penstock::node::change {

/// On the control executor. What is there counts, not what an earlier run did: another run, after
/// one that failed or was cut off, goes on from where the device is.
class DivisionRun {
 public:
  /// How a run reaches the device. The references must outlive it.
  struct Tools {
    device::AsyncBackend& backend;
    partition::HolderOf holder_of;
    /// Resets the device and calls the function once its driver can be called again.
    std::function<void(const device::Facts& device, std::function<void(base::Status)>)> reset;
    /// What it does now: "creating 1g.5gb at slice 3 (2 of 5)".
    std::function<void(const std::string&)> progress;
  };
  struct Goal {
    std::string device;   ///< id
    std::string address;  ///< in the backend
    /// How it shall be divided, as it is divided now; called after each look.
    std::function<partition::DesiredDivision(const partition::Division& now)> desired;
    bool mode_only = false;   ///< the parts do not count
    bool skip_reset = false;  ///< where a reset is needed, ends with a mode that is pending if
                              ///< that is all that counts, and else fails
  };

  DivisionRun(Tools tools, Goal goal);

  /// Calls `done` once, not after the destructor; possibly before this returns. Errors: those of a
  /// plan, of a call of the driver and of the reset; kAborted: the device is another one, what
  /// was created is not as desired, or it is divided otherwise each time.
  void Start(std::function<void(base::Status)> done);

  /// The device and its parts as last looked at, the device first.
  const std::vector<device::Facts>& seen() const { return seen_; }

  /// Ids of what was there at its first look.
  const std::set<std::string>& first_seen() const { return first_seen_; }

  /// Addresses of the parts that it has created.
  const std::set<std::string>& created() const { return all_created_; }

  /// Whether a call that creates a part ended without an answer, as when the worker dies: there may
  /// be such a part.
  bool unanswered() const { return unanswered_; }

 private:
  void Look();
  void LookAtPart(std::size_t part);
  void Seen();
  bool EndsPending() const;
  std::string WhyUndone(const partition::PartitionPlan& plan) const;
  base::Result<partition::PartitionPlan> Plan(const partition::Division& now) const;
  void Take(std::size_t step);
  void Destroy(const partition::PlanStep& step, std::size_t number);
  void Create(const partition::PlanStep& step, std::size_t number);
  void Reset(std::size_t number);
  void LookBeforeReset(std::size_t number);
  void LookAfterReset(std::size_t number, const base::Status& result);
  std::string AddressOf(const std::string& id) const;
  void End(const base::Status& result);
  std::function<void(base::Result<std::string>)> Then(std::size_t number);

  const Tools tools_;
  const Goal goal_;
  std::function<void(base::Status)> done_;
  std::vector<device::Facts> seen_;
  std::vector<partition::PlanStep> steps_;
  std::vector<std::string> created_;  // addresses, by step
  std::set<std::string> first_seen_, all_created_;
  bool unanswered_ = false;
  int rounds_ = 0;
  base::Lifetime lifetime_;
};

/// Whether a mode of the device takes effect only with a reset.
bool IsAnyModePending(const device::Facts& device);

/// Whether the mode is as desired, perhaps only after a reset.
bool IsModePending(const partition::Division& now, const partition::DesiredDivision& desired);

}  // namespace penstock::node::change
