// How a device is divided now, and who holds it and its parts. Pure.
#pragma once

#include <string>

#include "device/model.h"
#include "device/sharing.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/partition/division.h"

namespace penstock::node::change {

/// Who holds a device or a part: leases, a process that the driver reports, or clients of its
/// sharing server; empty: no one. The processes of a server, which are no outside processes
/// (attribute/follow.h), hold nothing: they end when the device is withdrawn.
std::string HolderOf(const std::string& id, const inventory::Snapshot& inventory,
                     const ledger::Snapshot& ledger, const device::SharedDevices& servers);

/// The device and those of its parts that are there.
partition::Division DivisionNow(const device::Facts& device, const inventory::Snapshot& inventory,
                                const ledger::Snapshot& ledger,
                                const device::SharedDevices& servers);

/// Whether the inventory has these devices, each read once, with the parts and modes that they have
/// here. `seen`: a device, and all of its parts.
bool IsRead(const std::vector<device::Facts>& seen, const inventory::Snapshot& inventory);

}  // namespace penstock::node::change
