// Which slots are offered under which name, at which door. Pure.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/dialect.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"

namespace penstock::node::share {

/// The doors a device can belong to.
inline constexpr std::string_view kKubeletDoor = "kubelet";
inline constexpr std::string_view kLocalDoor = "local";

/// Says which door a device belongs to; "" for none.
using DoorOf = std::function<std::string(const device::Facts&)>;

/// A slot as a door shows it.
struct OfferedSlot {
  ledger::Slot slot;
  bool usable = false;
  std::string reason;  ///< why it is not usable
  std::optional<int> numa_node;
  bool operator==(const OfferedSlot&) const = default;
};

/// A resource name and what is behind it at one door, in order of index.
struct Offer {
  std::string resource;
  std::string door;
  std::vector<OfferedSlot> slots;
  bool operator==(const Offer&) const = default;
};

using DialectOf = std::function<const device::Dialect*(std::string_view vendor)>;

/// The offers that follow from the facts, the health and the ledger: a device with somebody outside on it is not usable while that lasts;
/// one that is withheld by its facts, or was never looked at, is not offered at all.
std::vector<Offer> ComputeOffers(const inventory::Snapshot& inventory, const ledger::Snapshot& ledger, const DoorOf& door_of,
                                 const DialectOf& dialect_of);

}  // namespace penstock::node::share
