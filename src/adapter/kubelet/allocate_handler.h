// Handles an Allocate request of the kubelet: grants each container a lease and returns its edits.
// Decides on the control loop, from the offers that the kubelet was shown.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "adapter/kubelet/container_response.h"
#include "base/core/clock.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offers.h"
#include "protocol/kubelet/device_plugin.h"

namespace penstock::adapter::kubelet {

/// A random UUID (RFC 9562, version 4) from the kernel: std::random_device first queries the
/// processor's features, which takes 15 µs in a virtual machine, each time.
std::string RandomUuid();

/// Use on the control loop.
class AllocateHandler {
 public:
  struct Node {
    const base::Clock& clock;
    node::inventory::Inventory& inventory;
    node::ledger::Ledger& ledger;
    node::share::Offers& offers;
    device::DialectOf dialect_of;
  };
  /// State at the time of a request.
  struct Now {
    const std::vector<node::share::Offer>& offers;  ///< as shown to the kubelet
    InjectionMode mode;
  };
  explicit AllocateHandler(Node node) : node_(std::move(node)) {}

  /// Allocates for all containers of the request or for none: after an error it releases the leases
  /// that it already granted. Errors are for people, who read them in the pod's status.
  base::Result<std::vector<protocol::kubelet::ContainerEdits>> Allocate(
      const std::string& resource, const protocol::kubelet::AllocateRequest& request,
      const Now& now);

 private:
  base::Result<protocol::kubelet::ContainerEdits> AllocateContainer(
      const std::string& resource, const std::vector<std::string>& ids, const Now& now,
      std::vector<std::string>& allocated);
  base::Status ReleaseFormerHolders(const std::vector<node::ledger::Slot>& slots);

  const Node node_;
  std::uint64_t allocations_ = 0;
};

/// Returns the offer of a resource; null if it is not offered to the kubelet.
const node::share::Offer* FindOffer(const std::vector<node::share::Offer>& offers,
                                    const std::string& resource);

}  // namespace penstock::adapter::kubelet
