// Calls a follower once for each turn of the control loop in which something changed about this
// node's devices.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/executor.h"
#include "base/lifetime.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offers.h"

namespace penstock::node::share {

/// What is known and decided about this node's devices at one moment; assignments and offers follow
/// from the rest. Equal if all snapshots are the same objects.
struct NodeDevices {
  std::shared_ptr<const inventory::Snapshot> inventory;
  std::shared_ptr<const ledger::Snapshot> ledger;
  std::shared_ptr<const device::SharedDevices> servers;
  std::shared_ptr<const DesiredAssignments> desired;
  std::shared_ptr<const std::vector<Offer>> offers;
  bool operator==(const NodeDevices&) const = default;
};

/// Whether nothing but the times of readings differs, as after most polls.
bool OnlyReadTimesDiffer(const NodeDevices& now, const NodeDevices& before);

/// On the control executor.
class Turns {
 public:
  /// Compares snapshots to find out what changed since the turn before; before the first one there
  /// are none. May change anything, which causes another turn.
  using Follow = std::function<void(const NodeDevices& now, const NodeDevices& before)>;

  /// All must outlive this. Takes the callback of `offers`.
  Turns(base::Executor& control, inventory::Inventory& inventory, ledger::Ledger& ledger,
        Offers& offers, Follow follow);
  ~Turns();

 private:
  void Schedule();
  void Turn();

  base::Executor& control_;
  inventory::Inventory& inventory_;
  ledger::Ledger& ledger_;
  Offers& offers_;
  const Follow follow_;
  NodeDevices last_;
  bool scheduled_ = false;
  base::Lifetime lifetime_;
  base::Subscription on_inventory_, on_ledger_;
};

}  // namespace penstock::node::share
