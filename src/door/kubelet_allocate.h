// An Allocate of the kubelet's: a lease for each container, and its edits. Decides on the control loop what was shown to the kubelet
// before.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "door/container_answer.h"
#include "edge/kubelet/device_plugin.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offers.h"

namespace penstock::door {

/// On the control loop.
class KubeletAllocate {
 public:
  struct Node {
    const base::Clock& clock;
    node::inventory::Inventory& inventory;
    node::ledger::Ledger& ledger;
    node::share::Offers& offers;
    node::share::DialectOf dialect_of;
  };
  /// What holds at the moment of a request.
  struct Now {
    const std::vector<node::share::Offer>& offers;  ///< as the kubelet was shown them
    ContainerSay say;                               ///< but for `unique`, which each container has its own
  };
  explicit KubeletAllocate(Node node) : node_(std::move(node)) {}

  /// All containers of the request, or none: then what was handed to the first of them is free again. Errors are for people, who read them
  /// in the pod's status.
  base::Result<std::vector<edge::kubelet::ContainerEdits>> Allocate(const std::string& resource,
                                                                    const edge::kubelet::AllocateRequest& request, const Now& now);

 private:
  base::Result<edge::kubelet::ContainerEdits> AllocateContainer(const std::string& resource, const std::vector<std::string>& ids,
                                                                const Now& now, std::vector<std::string>& handed);
  base::Status ReleaseFormerHolders(const std::vector<node::ledger::Slot>& slots);

  const Node node_;
  std::uint64_t allocations_ = 0;
};

/// The offer of a resource; null where it is not offered to the kubelet.
const node::share::Offer* FindOffer(const std::vector<node::share::Offer>& offers, const std::string& resource);

}  // namespace penstock::door
