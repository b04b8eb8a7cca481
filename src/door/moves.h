// Devices on their way from one door to another: withdrawn, acknowledged, offered. Decides nothing but when a device may be offered anew,
// and offers nothing itself.
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "api/node_config.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "door/doors_file.h"
#include "door/move_orders.h"
#include "edge/broker/protocol.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offers.h"

namespace penstock::door {

/// On the control executor. A device belongs to one door at a time: one that is wished elsewhere, by the configuration or by hand, is
/// offered nowhere until nobody holds it and the kubelet counts it no more. Tells the offers so by SetMoves: of every device that it knows,
/// so that a configuration alone moves none. What was moved by hand, and is on its way by hand, is kept in a file.
class DoorMoves {
 public:
  /// The node, as far as this needs it. All must outlive it.
  struct Node {
    node::inventory::Inventory& inventory;
    node::ledger::Ledger& ledger;
    node::share::Offers& offers;
  };
  struct Kubelet {
    /// KubeletDoor::AskCounted; null where there is no such door, whose devices then need nobody's word.
    std::function<void(std::function<void(base::Result<std::set<std::string>>)>)> ask_counted = nullptr;
    /// KubeletDoor::AwaitReleases.
    std::function<void(bool)> await_releases = nullptr;
  };

  /// `path` is doors.json's, written on `io`; `remembered` is what DoorsKeeper::Load found there.
  DoorMoves(base::Executor& control, base::Executor& io, Node node, node::share::OpenDoors open, Kubelet kubelet, const std::string& path,
            DevicesByHand remembered);
  ~DoorMoves();

  /// The configuration in force is another one. Before Offers::Configure is told of it.
  void Configure(const api::NodeConfig& config);

  /// Moves devices by hand. `progress` is told each change of each device, `done` once, at the end, perhaps before this returns;
  /// neither after the destructor. Errors change nothing: kNotFound, kFailedPrecondition (the door is closed; a device is held and the
  /// request waits for nobody), kInvalidArgument. Later: kDeadlineExceeded where devices went back, because they were still held after the
  /// request's wait; kCancelled where another request took one of them over.
  using Progress = MoveOrders::Progress;
  using Done = MoveOrders::Done;
  void Set(const edge::broker::DoorRequest& request, Progress progress, Done done);

  /// The doors that were said by hand, for plans.
  node::share::Moves by_hand() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::door
