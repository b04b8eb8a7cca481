// Publishes the current offers whenever they change.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/published.h"
#include "node/share/assignment.h"

namespace penstock::node::share {

/// Follows configuration, inventory, ledger and servers. Runs on the control executor and publishes
/// there, immediately, and only where something changed. Subscribers may change what this follows.
class Offers {
 public:
  Offers(inventory::Inventory& inventory, ledger::Ledger& ledger, device::DialectOf dialect_of,
         EnabledAllocators enabled);

  /// Takes a new configuration.
  void Configure(const api::NodeConfig& config);
  /// Takes the allocators of devices that were moved.
  void SetMoves(Moves moves);
  /// Takes the devices that are withdrawn for changes of them.
  void SetWithdrawals(Withdrawals withdrawals);
  /// Follows the servers of a vendor's driver, which must outlive this.
  void FollowServers(const std::string& vendor, base::Published<device::SharedDevices>& servers);

  /// When subscribers are called, desired() already has the assignments that the offers follow
  /// from.
  base::Published<std::vector<Offer>>& published() { return published_; }
  /// Published right before the offers that follow from them. A reader that needs both also
  /// subscribes to the offers.
  base::Published<DesiredAssignments>& desired() { return desired_; }
  /// Of all vendors.
  base::Published<device::SharedDevices>& servers() { return servers_; }

 private:
  void Recompute();
  void Changed();
  void Compute();

  inventory::Inventory& inventory_;
  ledger::Ledger& ledger_;
  const device::DialectOf dialect_of_;
  const EnabledAllocators enabled_;
  api::NodeConfig config_;
  std::uint64_t facts_generation_ = 0;  // of the facts that the assignments were computed from
  bool recompute_ = false, changed_ = false, reporting_ = false;
  Moves moves_;
  Withdrawals withdrawals_;
  OfferBook book_;
  base::Published<DesiredAssignments> desired_;
  std::map<std::string, base::Published<device::SharedDevices>::Snapshot> servers_of_;  // by vendor
  base::Published<device::SharedDevices> servers_;
  base::Published<std::vector<Offer>> published_;
  std::vector<base::Subscription> subscriptions_;
};

}  // namespace penstock::node::share
