// Loads a vendor's driver again where modes of its devices wait for that
// (device::ModeEffect::kAfterDriverReload), the site's policy allows it, and none of its devices is
// in use.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/config/node_config.h"
#include "base/executor.h"
#include "base/lifetime.h"
#include "node/change/device_changes.h"
#include "node/change/device_use.h"
#include "node/change/pauses.h"
#include "node/change/reload_need.h"
#include "node/change/resets.h"

namespace penstock::node::change {

/// On the control executor. Starts with SetPolicy(kNever). One vendor at a time, and all devices of
/// it, in the steps of Resets: withdraw them; wait until the kubelet has taken note and they were
/// read again, and check that they still are not in use; release the agent's own connection and
/// load the driver again; open it; read the devices. After an attempt, whatever became of it, the
/// next one waits for 10 minutes, then twice as long each time, up to about a day: a driver that
/// does not take the mode on would be loaded again and again. After a withdrawal in vain, because
/// someone has come, it is 1 minute to half an hour. A layout that is applied ends these pauses.
/// DeviceChange::details is the vendor.
class DriverReloads final : public ChangeKind {
 public:
  using NeedOf = std::function<ReloadNeed(std::string_view vendor)>;

  /// Adds itself to `changes`, which calls it until it is destroyed, after the divisions.
  DriverReloads(base::Executor& control, inventory::Inventory& inventory, ledger::Ledger& ledger,
                DeviceChanges& changes, Resets::VendorOf vendor_of, NeedOf need_of);

  /// Applies from now on; a reload under way continues.
  void SetPolicy(api::ResetPolicy policy);

  /// What becomes of this need of a vendor's devices.
  ReloadOutlook OutlookOf(std::string_view vendor, const ReloadNeed& need) const;

  std::string_view name() const override { return kReloadKind; }
  const std::vector<ChangeStep>& steps() const override { return steps_; }
  bool hides_devices() const override { return true; }
  bool includes_parts() const override { return true; }
  std::string Explain(const DeviceChange& change, const std::string& device) const override;
  std::vector<DeviceChange> Due() override;
  bool AwaitsDevices() const override { return awaits_; }
  void Ended(const DeviceChange& change, const base::Status& result) override;

 private:
  std::vector<const inventory::Entry*> DevicesOf(const inventory::Snapshot& snapshot,
                                                 std::string_view vendor) const;
  std::string InTheWay(std::string_view vendor) const;

  StepResult AwaitUnused(const DeviceChange& change);
  StepResult Reload(const DeviceChange& change);
  StepResult Reopen(const DeviceChange& change);
  StepResult Read(const DeviceChange& change) const;

  base::Executor& control_;
  inventory::Inventory& inventory_;
  DeviceChanges& changes_;
  const DeviceUse use_;
  const Resets::VendorOf vendor_of_;
  const NeedOf need_of_;
  const std::vector<ChangeStep> steps_;
  api::ResetPolicy policy_ = api::ResetPolicy::kNever;
  bool awaits_ = false;
  Pauses attempts_, in_vain_;
  std::map<std::string, int> requests_;  // by vendor: ReloadNeed::request
  // Of the reload under way.
  enum class Phase { kBefore, kUnderWay, kAfter } phase_ = Phase::kBefore;
  base::Status outcome_;
  base::Lifetime attempt_;  // of callbacks of the driver
  bool reading_ = false;    // new readings were requested
  bool opened_ = false;     // the driver was opened again
  base::Lifetime lifetime_;
};

}  // namespace penstock::node::change
