// Computes each device's desired assignment from the configuration: its allocator, its resource
// name and its number of shares. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "device/dialect.h"
#include "device/sharing.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/allocator.h"
#include "node/share/offer.h"

namespace penstock::node::share {

/// The allocator of a device that was moved, in place of the configuration's.
struct Move {
  std::string allocator;  ///< "" for none
  bool with_parts =
      false;  ///< also that of its parts, except for those that have a move themselves
  std::string reason = {};  ///< why it is not the one that is wanted: Assignment::reason
  bool operator==(const Move&) const = default;
};
using Moves = std::map<std::string, Move>;  ///< by device id

/// What a change that is under way means for the offer of a device.
struct Withdrawal {
  std::string reason;              ///< why it is not offered
  bool listed = false;             ///< its allocator lists it as unusable; else it does not list it
  bool with_parts = false;         ///< also of its parts, present and future, …
  std::set<std::string> except{};  ///< … other than these
  bool operator==(const Withdrawal&) const = default;
};
using Withdrawals = std::map<std::string, Withdrawal>;  ///< by device id

/// How the parts of a vendor's devices are named: as NodeConfig::parts and
/// NodeConfig::profiled_parts say.
device::PartNames PartNamesOf(api::PartsStrategy all, api::PartsStrategy of_profiles,
                              const device::Dialect& dialect);

struct DesiredAssignments {
  Assignments assignments;
  std::vector<std::string> remarks;  ///< rules that match no device, and devices that cannot be
                                     ///< shared as requested; each begins with a key of the
                                     ///< configuration
  bool operator==(const DesiredAssignments&) const = default;
};

/// Applies the rules in order; the first that matches decides: allocators.assign, resources,
/// sharing.rules. A device that cannot be shared as its rule says is not offered, with the reason;
/// nor is a device that was moved to a disabled allocator. A missing device keeps its assignment
/// and still counts towards a rule's `most`, so that other devices are not reassigned, unless
/// another device now occupies its PCI address.
DesiredAssignments ComputeAssignments(const api::NodeConfig& config,
                                      const EnabledAllocators& enabled, const Moves& moves,
                                      const inventory::Snapshot& inventory,
                                      const device::DialectOf& dialect_of,
                                      const Withdrawals& withdrawals = {});

/// Returns the sets of devices that need a server of the driver: devices that are assigned such
/// sharing, once no lease holds them in another shape, and devices of which such a share is still
/// held, in the shape of that share. Neither health nor absence changes a set; but a part is a set
/// of its own, which ends with the part.
std::vector<device::SharedSet> SetsOf(const Assignments& assignments,
                                      const inventory::Snapshot& inventory,
                                      const ledger::Snapshot& ledger);

/// Returns what labels say about each device's sharing. `servers`: see device::SharingService.
std::map<std::string, device::LabelShare> LabelSharesOf(const Assignments& assignments,
                                                        const device::SharedDevices& servers);

/// The slot of a device, or of one share of it, offered under this name.
ledger::Slot SlotOf(const inventory::Entry& entry, const std::string& resource,
                    const device::Shape& shape, int share);

/// What the device takes of those that it is a part of.
device::Capacity PartCapacityOf(const inventory::Entry& entry);

/// "GPU-...::3"; the device's own id where it is not shared.
std::string SlotId(const std::string& device, const device::Shape& shape, int share);

/// The inverse of SlotId: returns the device's id. The kubelet sends these ids, so they may contain
/// anything.
std::string DeviceOf(std::string_view slot_id);

}  // namespace penstock::node::share
