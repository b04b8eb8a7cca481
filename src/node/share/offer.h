// Computes which slots each allocator offers, and under which resource names. Pure.
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
#include "node/share/allocator.h"

namespace penstock::node::share {

/// How a device is assigned: its allocator, resource name and shape.
struct Assignment {
  std::string allocator;  ///< "" for none
  std::string reason;     ///< why it is not offered, or not as requested: one sentence that says
                          ///< what to do
  std::string withdrawn;  ///< why it is offered as unusable: a change of it is under way
  std::string resource;   ///< "nvidia.com/gpu"
  device::Shape shape;
  bool renamed = false;     ///< the resource's name says that it is shared
  bool single = false;      ///< a request may have only one share
  bool by_profile = false;  ///< a part, whose resource is that of its profile
  bool on_demand = false;   ///< parts of it are created for requests
  bool operator==(const Assignment&) const = default;
};
using Assignments = std::map<std::string, Assignment>;  ///< by device id; a device that is missing
                                                        ///< here is not offered

/// A slot as an allocator offers it.
struct OfferedSlot {
  ledger::Slot slot;
  bool usable = false;
  std::string reason;  ///< why it is not usable
  std::optional<int> numa_node;
  device::Isolation isolation =
      device::Isolation::kHardware;  ///< from the holders of other shares of the device
  bool cut = false;   ///< a share cut for a request from a device that is assigned whole, and is
                      ///< whole again once no share of it is held
  bool held = false;  ///< not usable because a lease still holds the device as it was offered
                      ///< before, or another device of the tree, and only until that lease ends
  bool excluded = false;  ///< likewise, and only because of another device of the tree
  bool operator==(const OfferedSlot&) const = default;
};

/// The slots that one allocator offers under one resource name, in order of index and share.
struct Offer {
  std::string resource;
  std::string allocator;
  std::vector<OfferedSlot> slots;
  bool single = false;      ///< a request may have only one slot
  bool by_profile = false;  ///< of parts, under the name of their profile: not what a request gets
                            ///< that asks for a device and names no profile
  bool operator==(const Offer&) const = default;
};

/// What isolates the holders of a device in this shape from each other, as its server reports now.
device::Isolation IsolationOf(const std::string& device, const device::Shape& shape,
                              const device::SharedDevices& servers);

/// Whether a device has not been read since it first appeared. No fault is known against it, so it
/// must not be shown as unusable. A device that returns after it was gone was offered before and
/// stays offered.
bool NeverRead(const inventory::Entry& entry);

/// Computes the offers from assignments, facts, health, ledger and servers. A device with an
/// outside process is not usable while that process is there. A device that its facts withhold, or
/// that was never read, is not offered at all.
///
/// A slot that is held in a shape other than the assigned one stays held and blocks what it
/// excludes. A holder of the whole device blocks every share. Any holder blocks the whole device. A
/// holder of another kind of sharing (or of other limits, where a server enforces them) blocks
/// everything that is free. A holder of a share that is no longer in the list blocks one free
/// share, from the end of the list. A share that is held through another allocator or under another
/// resource name is not usable under this one. The usable slots never allow more holders of a
/// device than it has shares.
///
/// A device of the local allocator that is assigned whole, and of which a share that was cut for a
/// request is held, is offered in the shape of that share while any such share is held.
std::vector<Offer> ComputeOffers(const Assignments& assignments,
                                 const inventory::Snapshot& inventory,
                                 const ledger::Snapshot& ledger,
                                 const device::SharedDevices& servers);

/// Computes the same offers incrementally: recomputes a device's slots only where its inputs
/// changed.
class OfferBook {
 public:
  OfferBook();
  ~OfferBook();

  /// Returns whether the offers changed.
  bool Update(const Assignments& assignments, const inventory::Snapshot& inventory,
              const ledger::Snapshot& ledger, const device::SharedDevices& servers);
  std::vector<Offer> Get() const;

 private:
  struct Page;
  std::vector<Page> pages_;  // one for each device that is offered, in order
};

}  // namespace penstock::node::share
