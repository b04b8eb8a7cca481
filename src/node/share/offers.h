// The offers as they stand, published whenever they change.
#pragma once

#include <utility>
#include <vector>

#include "base/published.h"
#include "node/share/wish.h"

namespace penstock::node::share {

/// Follows configuration, inventory, ledger and servers. On the control executor; publishes on it, at once, and only changes. Those who are
/// told may change what is followed.
class Offers {
 public:
  Offers(inventory::Inventory& inventory, ledger::Ledger& ledger, DialectOf dialect_of, OpenDoors open);

  /// The configuration in force is another one.
  void Configure(const api::NodeConfig& config);
  /// Devices were moved by hand.
  void SetMoves(Moves moves);
  /// The servers of a vendor's driver, which must outlive this.
  void FollowServers(base::Published<device::SharedDevices>& servers);

  /// Who is told of these finds the wishes that they follow from.
  base::Published<std::vector<Offer>>& published() { return published_; }
  /// Published right before the offers that follow from them: who needs both follows the offers too.
  base::Published<Wished>& wished() { return wished_; }
  /// Of all vendors.
  base::Published<device::SharedDevices>& servers() { return servers_; }

 private:
  void Wish();
  void Changed();
  void Compute();

  inventory::Inventory& inventory_;
  ledger::Ledger& ledger_;
  const DialectOf dialect_of_;
  const OpenDoors open_;
  api::NodeConfig config_;
  std::uint64_t facts_generation_ = 0;  // that the wishes were computed of
  bool wish_anew_ = false, changed_ = false, telling_ = false;
  Moves moves_;
  OfferBook book_;
  base::Published<Wished> wished_;
  base::Published<device::SharedDevices> servers_;
  base::Published<std::vector<Offer>> published_;
  std::vector<base::Subscription> subscriptions_;
};

}  // namespace penstock::node::share
