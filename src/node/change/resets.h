// Resets devices that need it, where the site's policy allows it and no holder is disturbed. The
// monitor decides which devices need a reset.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/config/node_config.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "device/actions.h"
#include "node/change/device_changes.h"
#include "node/change/device_use.h"
#include "node/change/reset_plan.h"
#include "node/health/monitor.h"

namespace penstock::node::change {

/// On the control executor. Starts with SetPolicy(kIdle). Resets one group at a time, in these
/// steps: withdraw its devices; wait until the kubelet has taken note, sharing servers without
/// clients have ended and the devices were read again, and check that they still have no holder and
/// no process; release the agent's own connection to the driver and reset the devices; reopen the
/// driver; read the devices. A reset during which the agent ended, or that takes longer than an
/// hour, counts as a failed one, because its outcome is unknown. One that could not begin is tried
/// again ten minutes later.
class Resets final : public ChangeKind {
 public:
  /// The parts of a vendor that take part in a reset.
  struct Vendor {
    device::Actions* actions = nullptr;                       ///< null: never reset its devices
    std::function<void(std::function<void()> done)> release;  ///< inventory::Discovery::Release
    std::function<void()> reopen;                             ///< inventory::Discovery::Reopen
    std::function<void(const std::string& id)> read_soon;     ///< inventory::Discovery::ReadSoon
  };
  using VendorOf = std::function<Vendor(std::string_view vendor)>;

  /// Adds itself to `changes`, which calls it until it is destroyed.
  Resets(base::Executor& control, inventory::Inventory& inventory, ledger::Ledger& ledger,
         health::Monitor& monitor, DeviceChanges& changes, VendorOf vendor_of);

  /// Applies from now on; a reset under way continues.
  void SetPolicy(api::ResetPolicy policy);

  std::string_view name() const override { return "reset"; }
  const std::vector<ChangeStep>& steps() const override { return steps_; }
  bool hides_devices() const override { return false; }
  bool includes_parts() const override { return true; }
  std::string Explain(const DeviceChange& change, const std::string& device) const override;
  std::vector<DeviceChange> Due() override;
  bool AwaitsDevices() const override;
  void Ended(const DeviceChange& change, const base::Status& result) override;
  void Settled() override;

 private:
  bool NeedsReset(const std::string& id) const;
  std::vector<std::string> IdsOf(const DeviceChange& change) const;
  std::map<std::string, ResetCandidate> Candidates() const;
  void Note(const std::map<std::string, ResetCandidate>& candidates, const ResetPlan& plan);
  Vendor VendorOfDevices(const DeviceChange& change) const;
  std::string ReasonOf(const DeviceChange& change, const std::string& device) const;

  StepResult AwaitUnused(const DeviceChange& change);
  void ReadSoon(const DeviceChange& change) const;
  StepResult Reset(const DeviceChange& change);
  void BeginReset(const DeviceChange& change);
  void Count(const DeviceChange& change, const base::Status& outcome);
  StepResult Reopen(const DeviceChange& change);
  StepResult Read(const DeviceChange& change) const;

  base::Executor& control_;
  inventory::Inventory& inventory_;
  health::Monitor& monitor_;
  DeviceChanges& changes_;
  const DeviceUse use_;
  const VendorOf vendor_of_;
  const std::vector<ChangeStep> steps_;
  api::ResetPolicy policy_ = api::ResetPolicy::kNever;
  // Of the reset under way.
  enum class Phase { kBefore, kReleasing, kResetting, kAfter } phase_ = Phase::kBefore;
  base::Status outcome_;
  base::Lifetime attempt_;                            // of callbacks of the driver
  bool reading_ = false;                              // a new reading was requested
  bool counted_ = false;                              // the monitor knows the outcome
  std::map<std::string, base::WallTime> not_before_;  // id → when one that could not begin is tried
  std::map<std::string, std::string> failures_;       // id → what became of its last reset
  std::map<std::string, std::string> notes_;          // id → note passed to the monitor
  base::Lifetime lifetime_;
};

}  // namespace penstock::node::change
