// Computes from the configuration which allocator each device belongs to. Pure.
#pragma once

#include "api/config/node_config.h"
#include "node/share/offer.h"

namespace penstock::node::share {

/// Whether one of these names selects the device: an id, an index, or a glob over the model. An
/// empty list selects every device. An index means a position, whatever the driver's numbers are
/// while a device is missing (inventory::Entry::number).
bool Selects(const std::vector<std::string>& devices, const inventory::Entry& entry);

/// The first rule that matches a device decides. Where none matches: the kubelet's allocator where
/// it is enabled, else the local one, else "". `kubelet`, `local`: whether each is enabled.
AllocatorOf AssignAllocators(const api::NodeConfig& config, bool kubelet, bool local);

}  // namespace penstock::node::share
