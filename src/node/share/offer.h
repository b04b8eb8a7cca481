// Which slots are offered under which name, at which door. Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/dialect.h"
#include "device/sharing.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"

namespace penstock::node::share {

/// The doors a device can belong to.
inline constexpr std::string_view kKubeletDoor = "kubelet";
inline constexpr std::string_view kLocalDoor = "local";

/// Says which door a device belongs to; "" for none.
using DoorOf = std::function<std::string(const inventory::Entry&)>;

/// Says what the doors are to have of a device.
struct Wish {
  std::string door;      ///< "" for none
  std::string reason;    ///< why it is offered nowhere, or not as was asked for: one sentence that says what to do
  std::string resource;  ///< "nvidia.com/gpu"
  device::Shape shape;
  bool renamed = false;  ///< the resource's name tells that it is shared
  bool single = false;   ///< one request may have one share only
  bool operator==(const Wish&) const = default;
};
using Wishes = std::map<std::string, Wish>;  ///< by device id; one that is not there is offered nowhere

/// A slot as a door shows it.
struct OfferedSlot {
  ledger::Slot slot;
  bool usable = false;
  std::string reason;  ///< why it is not usable
  std::optional<int> numa_node;
  device::Isolation isolation = device::Isolation::kHardware;  ///< from those who have other shares of the device
  bool cut = false;   ///< a share for a caller, of a device that is wished whole and is so again once nobody holds one
  bool held = false;  ///< not usable because of somebody who holds the device as it was offered before, and only until they let go
  bool operator==(const OfferedSlot&) const = default;
};

/// A resource name and what is behind it at one door, in order of index and share.
struct Offer {
  std::string resource;
  std::string door;
  std::vector<OfferedSlot> slots;
  bool single = false;  ///< one request may have one slot only
  bool operator==(const Offer&) const = default;
};

/// What keeps the holders of a device in this shape apart, by what its server says now.
device::Isolation IsolationOf(const std::string& device, const device::Shape& shape, const device::SharedDevices& servers);

/// Whether a device was not read since it first appeared. Nothing speaks against it, so it must not be shown as unusable; one that is back
/// after it was gone was offered before and stays.
bool NotLookedAt(const inventory::Entry& entry);

using DialectOf = std::function<const device::Dialect*(std::string_view vendor)>;

/// The offers that follow from wishes, facts, health, ledger and servers. A device with somebody outside on it is not usable while that
/// lasts; one that is withheld by its facts, or was never looked at, is not offered at all. What is held in another shape than the wish's
/// stays held and stands in the way of what it excludes: a whole holder of every share, any holder of the whole, a holder in another kind
/// of sharing (or of other limits, where a server holds them) of all that is free, a holder of a share that is not in the list any more of
/// as many free shares, the last ones. A share held at another door or under another resource's name is not usable under this one. Nothing
/// that is usable makes more holders of a device than it is cut into. A device of the local door that is wished whole, and of which
/// somebody holds a share that was cut for them, is offered in that shape while anybody does.
std::vector<Offer> ComputeOffers(const Wishes& wishes, const inventory::Snapshot& inventory, const ledger::Snapshot& ledger,
                                 const device::SharedDevices& servers);

/// ComputeOffers at each change of something: computes a device's slots only where something changed that they follow from.
class OfferBook {
 public:
  OfferBook();
  ~OfferBook();

  /// Whether the offers are others than before.
  bool Update(const Wishes& wishes, const inventory::Snapshot& inventory, const ledger::Snapshot& ledger,
              const device::SharedDevices& servers);
  std::vector<Offer> Get() const;

 private:
  struct Page;
  std::vector<Page> pages_;  // one for each device that is offered, in order
};

}  // namespace penstock::node::share
