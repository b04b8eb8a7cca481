// What the configuration wants of each device: its door, its resource's name, into how many shares it is cut. Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/node_config.h"
#include "device/sharing.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offer.h"

namespace penstock::node::share {

/// Which doors are open on this machine.
struct OpenDoors {
  bool kubelet = false, local = false;
};

/// A device that was moved by hand, which counts more than the configuration.
struct Move {
  std::string door;    ///< "" while it is on its way: withdrawn, not offered yet
  std::string reason;  ///< of being on its way
  bool operator==(const Move&) const = default;
};
using Moves = std::map<std::string, Move>;  ///< by device id

struct Wished {
  Wishes wishes;
  std::vector<std::string> remarks;  ///< rules that match no device, devices that cannot be shared as asked for; each begins with a key
  bool operator==(const Wished&) const = default;
};

/// Rules in order, the first that matches counts: doors.assign, resources, sharing.rules. A device that cannot be shared as its rule says
/// is offered nowhere, with why; so is one that was moved to a door that is closed. Devices that are gone keep their wish, and their place
/// among those that a rule is for at most, so that nothing changes for others while they are away, unless another device has come to where
/// they were.
Wished ComputeWishes(const api::NodeConfig& config, OpenDoors open, const Moves& moves, const inventory::Snapshot& inventory,
                     const DialectOf& dialect_of);

/// The sets of devices that want a server of the driver's: those that are wished so, as soon as nobody holds them otherwise, and those of
/// which somebody still holds such a share, in the shape that it has. Neither health nor absence changes a set.
std::vector<device::SharedSet> SetsOf(const Wishes& wishes, const inventory::Snapshot& inventory, const ledger::Snapshot& ledger);

/// What labels say of each device's sharing. `servers`: see device::SharingService.
std::map<std::string, device::LabelShare> LabelSharesOf(const Wishes& wishes, const device::SharedDevices& servers);

/// "GPU-...::3"; the device's own id where it is not shared.
std::string SlotId(const std::string& device, const device::Shape& shape, int share);

/// Back from SlotId: the device's id. Ids come from the kubelet, so anything may stand in them.
std::string DeviceOf(std::string_view slot_id);

}  // namespace penstock::node::share
