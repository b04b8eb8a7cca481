// Records who holds which slot: the only source of truth about allocations on this node.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "base/core/shared_vector.h"
#include "base/published.h"
#include "device/model.h"
#include "node/inventory/device_tree.h"

namespace penstock::node::ledger {

/// A process that uses a device.
struct Process {
  pid_t pid = 0;
  std::uint64_t start = 0;  ///< distinguishes it from a later process with the same pid (proc(5)
                            ///< field 22)
  std::string user;
  std::string command;
  bool operator==(const Process&) const = default;
};

/// What one holder can hold: a device or a part of one, or a share of either. The slot of a whole
/// device or part has the device's own id.
struct Slot {
  std::string id;
  std::string device;
  std::string resource;  ///< the name under which it is allocated; empty where that is not known
                         ///< (an older checkpoint)
  device::Shape shape;   ///< of the device when it was allocated
  std::vector<inventory::Ancestor> ancestors;  ///< of the device; empty: it is no part of another
  device::Capacity capacity;  ///< what the device, as a part, takes of its ancestors
  device::Limits limits;      ///< of its holder, as they were in force when it was allocated
  bool operator==(const Slot&) const = default;
};

/// Returns the slot with a shape, where it is a share whose shape is not known (from an older
/// checkpoint, or from the kubelet, which reports only ids): time-slicing, with at least as many
/// shares as its number requires.
Slot WithShape(Slot slot);

enum class LeaseState {
  kAllocated,  ///< allocated, holder not known yet
  kHeld,
};

/// How far the limits of a lease are enforced.
enum class Enforcement {
  kVisibility,  ///< environment variables only
  kDevices,     ///< other devices' files cannot be opened
};
std::string_view ToString(Enforcement enforcement);

/// Slots allocated to one holder, all or none.
struct Lease {
  std::string id;
  std::string allocator;  ///< api::Allocator::name
  std::vector<Slot> slots;
  LeaseState state = LeaseState::kAllocated;
  Enforcement enforcement = Enforcement::kDevices;
  base::WallTime since{};

  // The holder, as far as it is known.
  std::vector<Process> processes;
  std::string cgroup;  ///< path of a run's own control group in the unified hierarchy; not written
                       ///< to the checkpoint, since the group itself persists
  std::string user;
  std::string command;
  std::string pod, pod_uid, namespace_name, container;
  std::map<std::string, std::string>
      labels;  ///< the configured subset of the labels of the pod, or of those given with the run

  bool operator==(const Lease&) const = default;
};

/// Two snapshots share the leases that are in both: few change from one to the next.
using Leases = base::SharedVector<Lease>;

/// By the id of a device or a lease.
using Processes = std::map<std::string, std::vector<Process>>;

/// The processes of this node that use devices, by what they have to do with them.
struct Attributed {
  Processes by_lease;  ///< of its holder
  Processes outside;   ///< by device: it was not allocated to them
  Processes graphics;  ///< by device: likewise, and they only draw on it
};

/// All leases and processes at one moment.
struct Snapshot {
  std::uint64_t generation = 0;
  Leases leases;      ///< by id
  Processes outside;  ///< device id → processes on it to which it was not allocated
  /// Device id → processes that only draw on it and to which it was not allocated. They are
  /// reported and block no allocation.
  Processes graphics;

  const Lease* FindLease(std::string_view id) const;
  /// Returns the first lease that has a slot of the device or of a part of it; null where no lease
  /// does.
  const Lease* HolderOf(std::string_view device) const;
  /// Returns the first lease that prevents this slot from being allocated (Excludes in capacity.h),
  /// or with which the parts of a device that are held leave no room for the slot's. Null where
  /// there is none.
  const Lease* InTheWayOf(const Slot& slot) const;
  bool IsOutside(std::string_view device, pid_t pid) const;  ///< listed in `outside`
  bool Free(std::string_view device) const;                  ///< no lease and no outside process
};

/// Keeps the snapshot. Runs on the control executor. Each change publishes once.
class Ledger {
 public:
  base::Published<Snapshot>& published() { return published_; }
  base::Published<Snapshot>::Snapshot Get() const { return published_.Get(); }

  /// Records a lease whose slots are all free (InTheWayOf); each slot is completed by WithShape.
  /// kAlreadyExists names a slot that is not free, and its holder; kInvalidArgument names a slot
  /// that excludes another one of the same lease. On an error nothing is recorded.
  base::Status Add(Lease lease);

  /// Changes what is known of a lease's holder; slots, allocator and `since` stay. kNotFound where
  /// there is no such lease.
  base::Status Update(const Lease& lease);

  /// Releases the slots. Does nothing where there is no such lease.
  void Release(const std::string& id);

  /// Sets the processes without a lease of all devices, and those of the leases that it names; the
  /// other leases keep theirs.
  void SetAttributed(Attributed attributed);

 private:
  void Publish(Snapshot next);
  base::Published<Snapshot> published_;
};

}  // namespace penstock::node::ledger
