// Moves devices from one allocator to another, as the configuration or a user wants it. A move is a
// change of the device (device_changes.h); node/share makes the offers.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "node/change/device_changes.h"
#include "node/change/manual_assignments.h"
#include "node/change/move_requests.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offers.h"

namespace penstock::node::change {

/// A request to move devices to another allocator.
struct MoveRequest {
  std::vector<std::string> devices;    ///< ids or indices
  std::string allocator;               ///< of api::AllocatorWords, or "default"
  std::optional<base::Duration> wait;  ///< how long to wait for holders; nothing: a device that is
                                       ///< held is refused
  bool dry_run = false;                ///< only answer what would be done
};

/// Runs on the control executor. A device belongs to one allocator at a time: a device that the
/// configuration or a manual assignment gives to another allocator is not offered until no lease
/// holds it and the kubelet no longer counts it. It is offered by its former allocator again where
/// nothing but the kubelet's acknowledgement was missing for kReleasedWithin: a request of a user
/// has failed then, and what the configuration wants is tried again every ten minutes. Reports this
/// to Offers with SetMoves, for every device that it knows, so that a new configuration alone moves
/// no device. Manual assignments, and manual moves in progress, are kept in a file.
class DeviceMoves {
 public:
  /// The parts of the node that this uses. All must outlive it.
  struct Node {
    inventory::Inventory& inventory;
    ledger::Ledger& ledger;
    share::Offers& offers;
    DeviceChanges& changes;
  };

  /// `await_releases`: KubeletAdapter::AwaitReleases; null where no kubelet adapter runs. `path` is
  /// that of doors.json, which is written on `io`; `remembered` is what LoadManualAssignments read
  /// from it. `changes` calls this until it is destroyed.
  DeviceMoves(base::Executor& control, base::Executor& io, Node node,
              share::EnabledAllocators enabled, std::function<void(bool)> await_releases,
              const std::string& path, ManualAssignments remembered);
  ~DeviceMoves();

  /// Takes a new configuration. Returns what Offers::Configure takes with it.
  [[nodiscard]] share::Moves Configure(const api::NodeConfig& config);

  /// Moves devices, with their parts, at a user's request. `progress` is called for each change of
  /// each device and `done` once, at the end; `done` may be called before this returns. Neither is
  /// called after the destructor. What they report is on disk, unless the file cannot be written.
  /// Errors that change nothing: kNotFound, kFailedPrecondition (the allocator is disabled, or a
  /// device is held and the request does not wait), kInvalidArgument. Later errors:
  /// kDeadlineExceeded where devices returned to their former allocator because they were still
  /// held after the request's wait, or the kubelet did not let them go; kCancelled where another
  /// request took over one of them; kAborted or kNotFound where a device was replaced or is no
  /// longer there.
  using Progress = MoveRequests::Progress;
  using Done = MoveRequests::Done;
  void Set(const MoveRequest& request, Progress progress, Done done);

  /// The manual assignments, for plans.
  share::Moves manual() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::node::change
