// Resets devices that need it, where the site's policy allows it and no holder is disturbed. The
// monitor decides which devices need a reset.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/config/node_config.h"
#include "base/executor.h"
#include "device/actions.h"
#include "node/health/monitor.h"
#include "node/health/reset.h"
#include "node/ledger/ledger.h"

namespace penstock::node::health {

/// On the control executor. Starts with SetPolicy(kIdle). Resets one group at a time, in these
/// steps: mark its devices unhealthy, so that they are no longer offered; wait for `withdrawal`;
/// check that the devices still have no holder and no process; release the agent's own connection
/// to the driver; reset the devices; reopen the driver and read the devices.
class Resets {
 public:
  /// The parts of a vendor that take part in a reset.
  struct Vendor {
    device::Actions* actions = nullptr;                       ///< null: never reset its devices
    std::function<void(std::function<void()> done)> release;  ///< inventory::Discovery::Release
    std::function<void()> reopen;                             ///< inventory::Discovery::Reopen
  };
  using VendorOf = std::function<Vendor(std::string_view vendor)>;

  /// `withdrawal`: after this time, allocations that were under way at the start of the reset have
  /// become visible.
  Resets(base::Executor& control, inventory::Inventory& inventory, ledger::Ledger& ledger,
         Monitor& monitor, VendorOf vendor_of, base::Duration withdrawal = std::chrono::seconds(5));
  ~Resets();
  Resets(const Resets&) = delete;
  Resets& operator=(const Resets&) = delete;

  /// Applies from now on; a reset under way continues.
  void SetPolicy(api::ResetPolicy policy);

 private:
  void ScheduleCheck();
  void Check();
  std::map<std::string, ResetCandidate> Candidates() const;
  void Note(const std::map<std::string, ResetCandidate>& candidates, const ResetPlan& plan);
  void Begin(const std::vector<std::string>& devices);
  void Withdrawn();
  void Reset();
  void Done(const base::Status& result);

  base::Executor& control_;
  inventory::Inventory& inventory_;
  ledger::Ledger& ledger_;
  Monitor& monitor_;
  VendorOf vendor_of_;
  const base::Duration withdrawal_;
  api::ResetPolicy policy_ = api::ResetPolicy::kNever;
  bool check_posted_ = false;
  std::vector<std::string> resetting_;  // ids
  std::string vendor_;                  // of the devices in resetting_
  bool released_ = false;
  std::map<std::string, std::string> failures_;  // id → error of the last reset
  std::map<std::string, std::string> notes_;     // id → note passed to the monitor
  base::TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  base::Subscription on_inventory_, on_ledger_;
};

}  // namespace penstock::node::health
