// The allocators that devices of a node can belong to, a row each. Pure.
#pragma once

#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/config/node_config.h"
#include "node/inventory/inventory.h"

namespace penstock::node::share {

/// Who allocates devices. Code that differs between allocators asks a row, not for a name.
struct Allocator {
  std::string_view name;       ///< "kubelet", in the configuration, reports and checkpoints
  std::string_view in_words;   ///< "local users", in sentences
  std::string_view holder;     ///< what its holders are: "pod", "run"
  bool counts_itself = false;  ///< it has a list of its own of what it may allocate, and must have
                               ///< taken note before a device is withdrawn from it; what it has
                               ///< allocated is known from its reports
  bool cuts_devices = false;   ///< it divides whole devices for requests
  bool (*enabled)(const api::NodeConfig& config, bool kubelet_exists) = nullptr;
};

inline constexpr std::string_view kKubeletAllocator = "kubelet";
inline constexpr std::string_view kLocalAllocator = "local";

/// In the order in which devices go to them that no rule assigns.
std::span<const Allocator> Allocators();

/// The row of this name; of one without a name, whose columns are false, for any other.
const Allocator& FindAllocator(std::string_view name);

/// The names of those that are enabled on this machine.
using EnabledAllocators = std::set<std::string, std::less<>>;
EnabledAllocators EnabledBy(const api::NodeConfig& config, bool kubelet_exists);

/// Whether one of these names selects the device: its id, or that of a device that it is a part of;
/// the index of the whole device; or a glob over the model. An empty list selects every device. An
/// index means a position, whatever the driver's numbers are while a device is missing
/// (inventory::Entry::number).
bool Selects(const std::vector<std::string>& devices, const inventory::Entry& entry);

/// NodeConfig::parts_on_demand where that has an effect: local users get devices, and parts under
/// the names of their profiles. Otherwise none.
std::vector<std::string> OnDemandDevices(const api::NodeConfig& config,
                                         const EnabledAllocators& enabled);

/// Whether parts are created on demand on a device, or it is a part of such a device. `on_demand`:
/// OnDemandDevices.
bool IsForPartsOnDemand(const std::vector<std::string>& on_demand, const inventory::Entry& entry);

/// Returns the allocator that a device belongs to; "" for none.
using AllocatorOf = std::function<std::string(const inventory::Entry&)>;

/// Devices on which parts are created on demand belong to the local allocator. Of others, the first
/// rule that matches a device decides. Where none matches: the first of the allocators that is
/// enabled, else "".
AllocatorOf AssignAllocators(const api::NodeConfig& config, EnabledAllocators enabled);

}  // namespace penstock::node::share
