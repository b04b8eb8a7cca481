// Which allocator each device of a node belongs to. Pure.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "api/allocators.h"
#include "api/config/node_config.h"
#include "node/inventory/inventory.h"

namespace penstock::node::share {

/// The names of the allocators that are enabled on this machine.
using EnabledAllocators = std::set<std::string, std::less<>>;
EnabledAllocators EnabledBy(const api::NodeConfig& config, bool kubelet_exists);

/// Whether one of them allocates devices to pods.
bool ServesPods(const EnabledAllocators& enabled);

/// Whether one of these names selects the device: its id, or that of a device that it is a part of;
/// the index of the whole device; or a glob over the model. An empty list selects every device. An
/// index means a position, whatever the driver's numbers are while a device is missing
/// (inventory::Entry::number).
bool Selects(const std::vector<std::string>& devices, const inventory::Entry& entry);

/// NodeConfig::parts_on_demand where that has an effect: the allocator that divides devices is
/// enabled, and parts are offered under the names of their profiles. Otherwise none.
std::vector<std::string> OnDemandDevices(const api::NodeConfig& config,
                                         const EnabledAllocators& enabled);

/// Whether parts are created on demand on a device, or it is a part of such a device. `on_demand`:
/// OnDemandDevices.
bool IsForPartsOnDemand(const std::vector<std::string>& on_demand, const inventory::Entry& entry);

/// Returns the allocator that a device belongs to; "" for none.
using AllocatorOf = std::function<std::string(const inventory::Entry&)>;

/// Devices on which parts are created on demand belong to the allocator that divides devices. Of
/// others, the first rule that matches a device decides. Where none matches: the first of the
/// allocators that is enabled, else "".
AllocatorOf AssignAllocators(const api::NodeConfig& config, EnabledAllocators enabled);

}  // namespace penstock::node::share
