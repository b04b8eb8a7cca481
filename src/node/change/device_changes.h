// Carries out changes of devices: takes the steps of each one as soon as they can be taken, and
// keeps a journal of those under way, so that a restarted agent continues where this one ended.
#pragma once

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/executor.h"
#include "node/change/device_change.h"
#include "node/change/kubelet_list.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offers.h"
#include "node/share/turns.h"

namespace penstock::node::change {

/// How long the kubelet may take to acknowledge that devices were withdrawn, and their servers to
/// exit: seconds are usual, and a kubelet that is restarted is back by then.
inline constexpr base::Duration kReleasedWithin = std::chrono::minutes(2);

/// On the control executor. From the first step of a change to its end, its devices (and their
/// parts, if its kind includes them) are not offered, and no other change of them begins. A change
/// ends after its last step, or after a step that failed and the later steps with
/// ChangeStep::finally.
class DeviceChanges {
 public:
  /// The parts of the node that this uses. All must outlive it.
  struct Node {
    inventory::Inventory& inventory;
    ledger::Ledger& ledger;
    share::Offers& offers;
  };

  /// `path` is that of the journal, changes.json, which is written on `io`; `remembered` is what
  /// LoadChanges read from it. Their devices are withdrawn as soon as their kind is added.
  DeviceChanges(base::Executor& control, base::Executor& io, Node node, KubeletList::Ask ask,
                const std::string& path, std::vector<DeviceChange> remembered);
  ~DeviceChanges();

  /// Adds a kind, which is called until this is destroyed. Call before Start.
  void Add(ChangeKind& kind);

  /// All devices of this node were read once: continues the changes of the previous agent and
  /// begins those that are due. A change of an unknown kind or step, or of a device that is not
  /// there or was replaced, ends.
  void Start();

  /// Takes the next turn of the devices (share::Turns).
  void Follow(const share::NodeDevices& now, const share::NodeDevices& before);

  /// Something else changed from which a kind decides, or for which a step waits.
  void Wake();

  /// The change under way of a device, or of a device that it is a part of, or of a part of it;
  /// null: none.
  const DeviceChange* Of(std::string_view device) const;

  /// The change under way of this device itself; null: none.
  const DeviceChange* On(std::string_view device) const;

  /// The change under way of this kind, and of this device unless it is empty; null: none.
  const DeviceChange* OfKind(std::string_view kind, std::string_view device = {}) const;

  /// Whether a change is under way.
  bool any() const;

  /// Whether a change is at the step of this name.
  bool AnyAt(std::string_view step) const;

  /// Whether a change of other devices is at a step that uses the driver.
  bool AnyUsesDriver(const std::set<std::string>& but_of = {}) const;

  /// The allocator that a device is offered by now; "" for none.
  std::string AllocatorOf(const std::string& device) const;

  /// The sharing servers of all vendors.
  std::shared_ptr<const device::SharedDevices> Servers() const;

  // Steps that all kinds have.

  /// Is done at once: the devices of a change are withdrawn before its first step is taken.
  static ChangeStep Withdraw();

  /// Waits until no lease holds the devices and the kubelet, where it had them, no longer counts
  /// them. Only for the change that a step was called with.
  StepResult AwaitUnused(const DeviceChange& change) const;

  /// Likewise, for a step without a bound of its own: waits for holders as long as it takes. Fails
  /// with kDeadlineExceeded once it has waited for nothing but the kubelet for kReleasedWithin;
  /// the message says what to do.
  StepResult AwaitHolders(const DeviceChange& change) const;

  /// Waits also until the devices have no sharing server: withdrawn devices need none, and one that
  /// has no clients ends.
  StepResult AwaitFree(const DeviceChange& change) const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::change
