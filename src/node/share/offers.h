// Keeps the offers up to date with what they follow from.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/published.h"
#include "node/share/assignment.h"

namespace penstock::node::share {

/// The offers follow from configuration, moves, withdrawals, inventory, ledger and servers. On the
/// control executor, but for LastDesired. Turns (turns.h) calls those that follow the offers.
class Offers {
 public:
  Offers(inventory::Inventory& inventory, ledger::Ledger& ledger, device::DialectOf dialect_of,
         EnabledAllocators enabled);

  /// Takes a new configuration, with the allocators of devices that were moved, so that it moves no
  /// device by itself.
  void Configure(const api::NodeConfig& config, Moves moves);
  /// Takes other allocators of devices that were moved.
  void SetMoves(Moves moves);
  /// Takes the devices that are withdrawn for changes of them.
  void SetWithdrawals(Withdrawals withdrawals);
  /// Follows the servers of a vendor's driver, which must outlive this.
  void FollowServers(const std::string& vendor, base::Published<device::SharedDevices>& servers);

  /// What follows from everything as it is now.
  std::shared_ptr<const std::vector<Offer>> Get();
  std::shared_ptr<const DesiredAssignments> Desired();
  /// The servers of all vendors.
  std::shared_ptr<const device::SharedDevices> Servers() const { return servers_; }

  /// What Desired returned last. Any thread.
  std::shared_ptr<const DesiredAssignments> LastDesired() const { return desired_.Get(); }

  /// Sets the function that is called when anything but inventory and ledger has changed.
  void OnInput(std::function<void()> changed) { on_input_ = std::move(changed); }

 private:
  void InputChanged();
  void Update();

  inventory::Inventory& inventory_;
  ledger::Ledger& ledger_;
  const device::DialectOf dialect_of_;
  const EnabledAllocators enabled_;
  api::NodeConfig config_;
  Moves moves_;
  Withdrawals withdrawals_;
  bool assignments_differ_ = true;  // configuration, moves or withdrawals have changed
  // Of the last update.
  std::uint64_t facts_generation_ = 0, state_generation_ = 0;
  std::shared_ptr<const ledger::Snapshot> from_ledger_;
  std::shared_ptr<const device::SharedDevices> from_servers_;
  OfferBook book_;
  base::Published<DesiredAssignments> desired_;
  std::shared_ptr<const std::vector<Offer>> offers_ = std::make_shared<const std::vector<Offer>>();
  std::map<std::string, base::Published<device::SharedDevices>::Snapshot> servers_of_;  // by vendor
  std::shared_ptr<const device::SharedDevices> servers_ =
      std::make_shared<const device::SharedDevices>();
  std::function<void()> on_input_;
  std::vector<base::Subscription> subscriptions_;
};

}  // namespace penstock::node::share
