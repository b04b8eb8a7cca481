// Recognizes shares by their ids.
#include "adapter/kubelet/shares_seen.h"

#include <algorithm>
#include <vector>

#include "node/share/assignment.h"
#include "node/share/offer.h"

namespace penstock::adapter::kubelet {
namespace {

/// The first id that is a share of a device of this node; empty if none is.
std::string FirstShare(const std::vector<std::string>& ids,
                       const node::inventory::Snapshot& inventory) {
  const auto share = std::ranges::find_if(ids, [&inventory](const std::string& id) {
    const std::string device = node::share::DeviceOf(id);
    return device != id && inventory.Find(device) != nullptr;
  });
  return share == ids.end() ? "" : *share;
}

}  // namespace

std::string SharesSeen(const node::ledger::Snapshot& ledger,
                       const node::inventory::Snapshot& inventory,
                       const base::Result<protocol::kubelet::Checkpoint>& checkpoint) {
  for (const auto& lease : ledger.leases)
    for (const auto& slot : lease.slots)
      if (lease.allocator == api::kKubeletAllocator && slot.shape != device::Shape{})
        return (lease.pod.empty() ? "a pod" : "pod " + lease.namespace_name + "/" + lease.pod) +
               " holds the share " + slot.id;
  if (!checkpoint.ok()) {
    if (checkpoint.error().code() == base::Code::kNotFound) return "";
    return "cannot read the kubelet's checkpoint (" + checkpoint.error().message() + ")";
  }
  for (const auto& [resource, ids] : checkpoint->registered)
    if (const std::string share = FirstShare(ids, inventory); !share.empty())
      return "the kubelet's checkpoint lists the share " + share + " of " + resource;
  for (const auto& entry : checkpoint->entries)
    if (const std::string share = FirstShare(entry.ids, inventory); !share.empty())
      return "according to the kubelet's checkpoint, a pod holds the share " + share + " of " +
             entry.resource;
  return "";
}

}  // namespace penstock::adapter::kubelet
