// The offers as they stand, published whenever they change.
#pragma once

#include <utility>
#include <vector>

#include "base/published.h"
#include "node/share/offer.h"

namespace penstock::node::share {

/// Follows inventory and ledger. On the control executor; publishes on it, at once, and only changes.
class Offers {
 public:
  Offers(inventory::Inventory& inventory, ledger::Ledger& ledger, DoorOf door_of, DialectOf dialect_of);

  base::Published<std::vector<Offer>>& published() { return published_; }

 private:
  void Compute();

  inventory::Inventory& inventory_;
  ledger::Ledger& ledger_;
  DoorOf door_of_;
  DialectOf dialect_of_;
  base::Published<std::vector<Offer>> published_;
  base::Subscription on_inventory_, on_ledger_;
};

}  // namespace penstock::node::share
