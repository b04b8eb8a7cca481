// What only the holder of the run directory's lock does: the ledger on disk, who holds what, and the doors of this machine. Construction
// only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/node_config.h"
#include "api/report.h"
#include "app/agent/containers.h"
#include "door/kubelet_plugin.h"
#include "door/local.h"
#include "door/moves.h"
#include "node/attribute/follow.h"
#include "node/ledger/keeper.h"
#include "node/share/offers.h"
#include "os/loop.h"

namespace penstock::app {

/// Which doors are open on this machine, by configuration and by what is there.
node::share::OpenDoors DecideDoors(const api::NodeConfig& config);

/// On the control loop. Each begins where it is constructed, but for the kubelet's door, which Open opens.
class Doors {
 public:
  struct Node {
    os::Loop& control;
    base::Executor& io;
    node::inventory::Inventory& inventory;
    node::ledger::Ledger& ledger;
    node::share::Offers& offers;
    Containers& containers;
  };
  struct Callbacks {
    std::function<std::shared_ptr<const api::NodeConfig>()> config;  ///< the one in force
    std::function<api::Report()> report;
    std::function<api::Samples()> samples;  ///< door::LocalDoor::Callbacks::samples
    std::function<void(const edge::broker::UsageRequest&, const api::Viewer&, door::Turns::Done)> usage;  ///< likewise
    std::function<void()> end;                                                      ///< somebody entitled asks the agent to end
    std::function<void(const edge::broker::PlanRequest&, door::Turns::Done)> plan;  ///< likewise
    std::function<void(const door::KubeletAmounts&)> kubelet_has;
    std::function<void()> containers_differ;  ///< how containers are given devices, or what is kept back from them
  };

  /// What an agent before us remembered.
  struct Remembered {
    std::vector<node::ledger::Lease> leases;
    door::DevicesByHand moved;
    door::QueueMemory queue;
  };
  /// kUnavailable where it is there and cannot be read, but for the queue, which is no reason not to start. Blocks.
  static base::Result<Remembered> Remember(const std::string& state_dir, const std::string& boot_id);

  /// What an agent before us remembered is taken over.
  Doors(Node node, node::share::OpenDoors open, const api::NodeConfig& config, Remembered remembered, std::string boot_id,
        Callbacks callbacks);

  /// The configuration in force is another one. Before the offers are told of it.
  void Configure(const api::NodeConfig& config);

  /// The doors that were said by hand, for plans.
  node::share::Moves by_hand() const { return moves_->by_hand(); }

  /// Listens at the local door. The caller holds the lock.
  base::Status Listen() { return local_.Open(); }

  /// Once all devices have been looked at, so that nobody is shown a device as unhealthy only because it was not looked at yet.
  void OpenKubelet();

  std::vector<api::DoorReport> Reports() const;

  /// Devices that a door keeps back although they are offered there, with why.
  std::map<std::string, std::string> Withheld() const;

  /// How many wait at the local door.
  std::size_t waiting() const { return local_.waiting(); }

 private:
  void MakeKubeletDoor(Node node, const api::NodeConfig& config, Callbacks callbacks, const std::vector<node::ledger::Lease>& remembered);

  node::ledger::Keeper keeper_;
  node::attribute::Follow follow_;
  door::LocalDoor local_;
  std::optional<door::KubeletDoor> kubelet_;
  const std::string why_no_kubelet_;
  std::optional<door::DoorMoves> moves_;  // always there; last, since it asks the kubelet's door
};

}  // namespace penstock::app
