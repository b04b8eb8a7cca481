// Has devices reset that need it, where the site wants that and nobody is disturbed. Judges no device: the monitor says who needs it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/node_config.h"
#include "base/executor.h"
#include "device/actions.h"
#include "node/health/health.h"
#include "node/health/reset.h"
#include "node/ledger/ledger.h"

namespace penstock::node::health {

/// On the control executor. Begins with SetPolicy(kIdle). A reset: its devices are kept unhealthy (so they are offered to nobody), some
/// time later, if still nobody holds one of them or is on it, our own connection to the driver is let go of, they are reset, the driver is
/// opened again and they are looked at. One at a time.
class Resets {
 public:
  /// What of one vendor takes part.
  struct Vendor {
    device::Actions* actions = nullptr;                      ///< null: its devices are never reset
    std::function<void(std::function<void()> done)> let_go;  ///< inventory::Discovery::LetGo
    std::function<void()> take_up;                           ///< inventory::Discovery::TakeUp
  };
  using VendorOf = std::function<Vendor(std::string_view vendor)>;

  /// `withdrawal`: what was being handed out when it began has arrived by then.
  Resets(base::Executor& control, inventory::Inventory& inventory, ledger::Ledger& ledger, Monitor& monitor, VendorOf vendor_of,
         base::Duration withdrawal = std::chrono::seconds(5));
  ~Resets();
  Resets(const Resets&) = delete;
  Resets& operator=(const Resets&) = delete;

  /// From now on; a reset that runs ends as it may.
  void SetPolicy(api::ResetPolicy policy);

 private:
  void LookSoon();
  void Look();
  std::map<std::string, ResetCandidate> Candidates() const;
  void Say(const std::map<std::string, ResetCandidate>& candidates, const ResetPlan& plan);
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
  bool look_posted_ = false;
  std::vector<std::string> under_way_;  // ids
  std::string vendor_;                  // of those
  bool let_go_ = false;
  std::map<std::string, std::string> failures_;  // id → what the last reset said
  std::map<std::string, std::string> notes_;     // id → what the monitor was told
  base::TimerId timer_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  base::Subscription on_inventory_, on_ledger_;
};

}  // namespace penstock::node::health
