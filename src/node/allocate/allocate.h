// From a request to devices: reserve (pure) and commit (the edits a consumer needs). Realizing has nothing to do yet: a share is a name.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "api/node_config.h"
#include "base/core/result.h"
#include "device/dialect.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offer.h"

namespace penstock::node::allocate {

/// What somebody asks for.
struct Request {
  std::string door;
  int count = 1;
  int share = 1;                     ///< 1: whole devices; N: one share each of devices cut N ways, which free ones are for this request
  std::string model;                 ///< glob over the model's name; empty: any
  std::vector<std::string> devices;  ///< ids or indices; given: exactly these, and count is their number
};

/// Chooses free, usable slots of the door's offers: of exactly the devices named, or of the best-linked set of `count`. Shares come from
/// devices that are shared in so many already, the fullest first, before a free device that is wished whole is cut for the caller, which it
/// is from the moment that the slot is held. kResourceExhausted: once those who hold devices let go, or devices have been looked at for the
/// first time; kUnavailable: not while devices are as they are (broken, gone, used from outside), whoever lets go; both messages say what
/// it would wait for. kNotFound, kFailedPrecondition: never with this hardware and configuration; kInvalidArgument.
base::Result<std::vector<ledger::Slot>> Reserve(const Request& request, const inventory::Snapshot& inventory,
                                                const ledger::Snapshot& ledger, const std::vector<share::Offer>& offers);

/// The devices that the request could ever be given a slot of, whoever has them now, by id.
std::set<std::string> DevicesFor(const Request& request, const inventory::Snapshot& inventory, const std::vector<share::Offer>& offers);

/// What the kubelet asks before it chooses.
struct Preference {
  std::vector<std::string> available, must_include;
  std::size_t size = 0;
};

/// `size` of the available ids, those that must be included among them. Of whole devices the best-linked set (ChooseBest). Of shares: as
/// few of one device as can be, then by the policy, then near to each other. Slots that are not usable only where they must be included.
/// Deterministic. Empty when in doubt: then the kubelet chooses. Unknown ids are doubt, and so is more than one share where one request may
/// have one only. `offer` is what the kubelet was told of this resource. Any thread.
std::vector<std::string> Prefer(const Preference& asked, const share::Offer& offer, api::SharePolicy policy,
                                const inventory::Snapshot& inventory);

enum class Consumer { kContainer, kContainerByIndex, kProcess };

/// One vendor's devices behind slots, each once however many shares of it there are, in order of index. Valid as long as the inventory's
/// snapshot is.
struct VendorDevices {
  const device::Dialect* dialect = nullptr;
  std::vector<const device::Facts*> devices;
};

/// By vendor. kNotFound where a device is not there any more, kUnavailable where nobody speaks its vendor's language.
base::Result<std::vector<VendorDevices>> DevicesOf(const std::vector<ledger::Slot>& slots, const inventory::Snapshot& inventory,
                                                   const share::DialectOf& dialect_of);

/// What the consumer of these slots needs. kNotFound where a device is not there any more, kUnavailable where its driver or its server is
/// not.
base::Result<device::Edits> Commit(const std::vector<ledger::Slot>& slots, Consumer consumer, const inventory::Snapshot& inventory,
                                   const share::DialectOf& dialect_of, const device::SharedDevices& servers);

/// The character devices that those who hold none of a vendor's devices may not open, and those that go with these slots: what a cgroup
/// enforces.
struct DeviceAccess {
  std::vector<device::DeviceNumbers> guarded;
  std::vector<device::DeviceNumbers> admitted;
};
DeviceAccess AccessFor(const std::vector<ledger::Slot>& slots, const inventory::Snapshot& inventory);

}  // namespace penstock::node::allocate
