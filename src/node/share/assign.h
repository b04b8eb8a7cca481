// Which door each device belongs to, by configuration. Pure.
#pragma once

#include "api/node_config.h"
#include "node/share/offer.h"

namespace penstock::node::share {

/// Whether one of these names the device: an id, an index, a glob over the model; none at all name every device. An index means a place,
/// whatever the driver's numbers are while a device is away (inventory::Entry::number).
bool Selects(const std::vector<std::string>& devices, const inventory::Entry& entry);

/// The first rule that matches a device counts; else the kubelet's door where it is open, else the local one; "" where that is closed, too.
DoorOf AssignDoors(const api::NodeConfig& config, bool kubelet_open, bool local_open);

}  // namespace penstock::node::share
