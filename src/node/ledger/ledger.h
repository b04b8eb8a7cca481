// Who holds what: the one truth about use on this node. Knows no door's protocol and no vendor.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "base/published.h"
#include "device/model.h"

namespace penstock::node::ledger {

/// A process that uses a device.
struct Process {
  pid_t pid = 0;
  std::uint64_t start = 0;  ///< tells it from a later one with the same pid (proc(5) field 22)
  std::string user;
  std::string command;
  bool operator==(const Process&) const = default;
};

/// What one consumer can hold: a device, or one share of it. A whole device's slot has the device's own id.
struct Slot {
  std::string id;
  std::string device;
  std::string resource;  ///< the name under which it is given out; empty where that is not known (an older checkpoint)
  device::Shape shape;   ///< of the device when it was given out
  bool operator==(const Slot&) const = default;
};

/// The slot with a shape where it is a share and nobody knows of what (an older checkpoint, the kubelet's ids alone): time-sliced, into as
/// many as its number at least says.
Slot WithShape(Slot slot);

enum class LeaseState {
  kHanded,  ///< given out, holder not known yet
  kHeld,
};

/// How far the limits of a lease are enforced.
enum class Enforcement {
  kVisibility,  ///< environment variables only
  kDevices,     ///< other devices' files cannot be opened
};
std::string_view ToString(Enforcement enforcement);

/// Slots given to one consumer, all or none.
struct Lease {
  std::string id;
  std::string door;  ///< "kubelet", "local"
  std::vector<Slot> slots;
  LeaseState state = LeaseState::kHanded;
  Enforcement enforcement = Enforcement::kDevices;
  base::WallTime since{};

  // The holder, as far as it is known.
  std::vector<Process> processes;
  std::string cgroup;  ///< of a run's own control group the path in the unified hierarchy; not kept, since the group itself is
  std::string user;
  std::string command;
  std::string pod, pod_uid, namespace_name, container;
  std::map<std::string, std::string> labels;  ///< of the pod, or given with the run; those that are wanted

  bool operator==(const Lease&) const = default;
};

/// Everything at one moment.
struct Snapshot {
  std::uint64_t generation = 0;
  std::vector<Lease> leases;                            ///< by id
  std::map<std::string, std::vector<Process>> outside;  ///< device id → processes that nobody handed it to
  /// Device id → processes that only draw on it and were not given it: shown, and in nobody's way.
  std::map<std::string, std::vector<Process>> graphics;

  const Lease* FindLease(std::string_view id) const;
  /// The first lease that has a slot on the device; null where it is free of leases.
  const Lease* HolderOf(std::string_view device) const;
  /// The first lease that keeps this slot from being handed: one that has the slot itself, the whole device, a share of what is wanted
  /// whole, or one of a device that is shared in another way. Null where none does.
  const Lease* InTheWayOf(const Slot& slot) const;
  bool Free(std::string_view device) const;  ///< no lease and nobody outside
};

/// Keeps the snapshot. On the control executor; each change publishes once.
class Ledger {
 public:
  base::Published<Snapshot>& published() { return published_; }
  base::Published<Snapshot>::Snapshot Get() const { return published_.Get(); }

  /// Records a lease whose slots are all free (InTheWayOf), each WithShape. kAlreadyExists names a slot that is not, and its holder;
  /// kInvalidArgument one that excludes another of the same lease. Then nothing is recorded.
  base::Status Hand(Lease lease);

  /// Changes what is known of a lease's holder; its slots, door and since stay. kNotFound where there is no such lease.
  base::Status Update(const Lease& lease);

  /// Gives the slots back. Nothing happens where there is no such lease.
  void Release(const std::string& id);

  /// Who is on a device without a lease; empty: nobody.
  void SetOutside(const std::string& device, std::vector<Process> processes);
  /// Who only draws on it without a lease.
  void SetGraphics(const std::string& device, std::vector<Process> processes);

 private:
  using ByDevice = std::map<std::string, std::vector<Process>>;
  void Set(ByDevice Snapshot::*which, const std::string& device, std::vector<Process> processes);
  void Publish(Snapshot next);
  base::Published<Snapshot> published_;
};

}  // namespace penstock::node::ledger
