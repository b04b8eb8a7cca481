// Turns a request into devices: Reserve chooses slots (pure), Commit returns the edits that the
// holder needs. A share is only a name, so there is nothing to create.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "base/core/result.h"
#include "device/dialect.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offer.h"

namespace penstock::node::allocate {

/// A request for devices.
struct Request {
  std::string allocator;
  int count = 1;
  int share = 1;  ///< 1: whole devices; N: one share each of devices that are shared N ways, for
                  ///< which free devices may be cut
  device::Limits limits;     ///< at most these must be enforced for each process of the holder,
                             ///< whatever enforces them
  std::string model;         ///< glob over the model's name; empty: any
  std::string vendor = {};   ///< only its devices; empty: of any one vendor, see Reserve
  std::string profile;       ///< parts of this profile, as users name it; empty: see least_memory
  base::Bytes least_memory;  ///< of each device or part. 0: whole devices, and parts that are
                             ///< offered under the name of whole devices
  std::vector<std::string>
      devices;  ///< ids or indices; where given, exactly these, and count is their number
};

/// Chooses free, usable slots of the allocator's offers: of exactly the devices named, or of the
/// best-linked set of `count`. Shares come first from devices that are already shared in that many,
/// the fullest first, and then from free devices that are assigned whole. Such a device is cut for
/// the request from the moment that the slot is held. A request for memory gets the devices or
/// parts that have the least of what suffices. Parts are chosen as in packing.h and linked_parts.h.
///
/// A request that names no devices gets those of one vendor: of the first by name that has
/// enough, or for a request for memory, of the one with the least.
///
/// kResourceExhausted: possible once holders release devices, or once devices have been read for
/// the first time. kUnavailable: impossible in the current state of the devices (unhealthy, gone,
/// used by an outside process), whatever is released. Both messages say what the request would wait
/// for. kNotFound, kFailedPrecondition: never possible with this hardware and configuration.
/// kInvalidArgument: the request is wrong. A request with limits gets only slots for which as low
/// ones are in force (Slot::limits); one that nothing enforces is refused: it would be worse than
/// none.
///
/// Names of profiles are read by the vendors' dialects; without `dialect_of` only the driver's own
/// names are known.
base::Result<std::vector<ledger::Slot>> Reserve(const Request& request,
                                                const inventory::Snapshot& inventory,
                                                const ledger::Snapshot& ledger,
                                                const std::vector<share::Offer>& offers,
                                                const device::DialectOf& dialect_of = {});

/// Returns the ids of the devices of which the request could ever get a slot, whoever holds them
/// now.
std::set<std::string> DevicesFor(const Request& request, const inventory::Snapshot& inventory,
                                 const std::vector<share::Offer>& offers,
                                 const device::DialectOf& dialect_of = {});

/// How many devices the request amounts to, in the measure of DevicesHeld (outlook.h): a part
/// counts as much as the largest that the request could get.
double AmountOf(const Request& request, const inventory::Snapshot& inventory,
                const std::vector<share::Offer>& offers, const device::DialectOf& dialect_of = {});

/// The kubelet's GetPreferredAllocation request.
struct Preference {
  std::vector<std::string> available, must_include;
  std::size_t size = 0;
};

/// Returns `size` of the available ids, including those in `must_include`. Of whole devices: the
/// best-linked set (ChooseBest). Of shares: as few of one device as possible, then by the policy,
/// then the best-linked. Parts, and shares of them, are packed instead (packing.h), or if they are
/// linked with each other, chosen by their links first (linked_parts.h). Slots that are not usable
/// only where they must be included. Deterministic. Returns nothing where the answer is
/// uncertain, so that the kubelet chooses: for unknown ids, and for more than one share where a
/// request may have only one. `offer` is the offer of this resource that was sent to the kubelet.
/// Any thread.
std::vector<std::string> Prefer(const Preference& request, const share::Offer& offer,
                                api::SharePolicy policy, const inventory::Snapshot& inventory,
                                const ledger::Snapshot& ledger);

enum class ConsumerKind { kContainer, kContainerByIndex, kProcess };

/// One vendor's devices behind slots, each once whatever the number of its shares, in order of
/// index. Valid as long as the inventory's snapshot is.
struct VendorDevices {
  const device::Dialect* dialect = nullptr;
  std::vector<const device::Facts*> devices;
};

/// Groups devices by vendor. kNotFound where a device is gone, kUnavailable where there is no
/// dialect for its vendor.
base::Result<std::vector<VendorDevices>> DevicesOf(const std::vector<ledger::Slot>& slots,
                                                   const inventory::Snapshot& inventory,
                                                   const device::DialectOf& dialect_of);

/// Returns the edits that the consumer of these slots needs. kNotFound where a device is gone,
/// kUnavailable where its driver or its server is missing.
base::Result<device::Edits> Commit(const std::vector<ledger::Slot>& slots, ConsumerKind consumer,
                                   const inventory::Snapshot& inventory,
                                   const device::DialectOf& dialect_of,
                                   const device::SharedDevices& servers);

/// What a control group enforces: the character devices that a process without any of a vendor's
/// devices may not open, and those that belong to these slots.
struct DeviceAccess {
  std::vector<device::DeviceNumbers> guarded;
  std::vector<device::DeviceNumbers> admitted;
};
DeviceAccess AccessFor(const std::vector<ledger::Slot>& slots,
                       const inventory::Snapshot& inventory);

}  // namespace penstock::node::allocate
