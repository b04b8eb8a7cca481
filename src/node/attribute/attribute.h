// Combines the reports of the kubelet, cgroups, processes and drivers into the ledger: which lease
// each holder belongs to, and which processes are outside processes.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "device/model.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offer.h"
#include "os/process/process.h"

namespace penstock::node::attribute {

/// A container that holds devices, as the kubelet reports it. `pod_uid` or the names may be
/// missing, depending on the source.
struct PodHolding {
  std::string pod_uid, pod, namespace_name, container;
  std::vector<std::string> ids;  ///< of slots: "GPU-...", "GPU-...::3"
  std::string resource = {};     ///< the name under which it holds them; empty: not known
  bool operator==(const PodHolding&) const = default;
};

/// The processes of this machine for the pids asked about: read on an I/O thread, passed to the
/// pure functions below.
using ProcessTable = std::map<pid_t, os::ProcessInfo>;

/// Updates the kubelet's leases from what pods hold: creates leases for pods that have none (after
/// a restart of the agent), fills in names, changes kHanded to kHeld, and releases leases that no
/// pod holds any more. A lease whose pod was never named is kept until it is older than `cutoff`,
/// because it may be younger than the kubelet's list. Without `cutoff` no lease is released,
/// because `pods` may be incomplete. The kubelet reports only ids: the shape of a share is taken
/// from its former holder, else from other holders on the device, else from `offers`.
void ApplyPods(const std::vector<PodHolding>& pods, std::optional<base::WallTime> cutoff,
               base::WallTime now, ledger::Ledger& ledger,
               const std::vector<share::Offer>& offers = {});

/// Assigns the driver's processes to the leases of their device, and collects the rest as outside
/// processes. A process belongs to a lease by its cgroup ("pod<uid>" of the lease's pod, or the
/// lease's own group), by process tree for leases with visibility only, or else to a lease whose
/// holder is not known yet. An outside process that only draws (a display server uses every GPU
/// that it finds) is listed separately and is never taken for an unknown holder.
ledger::Attributed Attribute(const inventory::Snapshot& inventory, const ledger::Snapshot& ledger,
                             const ProcessTable& processes);

/// Looks up processes and their ancestors in /proc; processes that have ended are left out. Blocks:
/// call it on an I/O thread.
ProcessTable ReadProcesses(const std::string& proc_root, const std::set<pid_t>& pids);

/// Returns those of the pods (by uid) that have a process. Blocks: call it on an I/O thread.
std::set<std::string> PodsWithProcesses(const std::string& proc_root,
                                        const std::set<std::string>& uids);

/// The pids to look up for Attribute.
std::set<pid_t> PidsOf(const inventory::Snapshot& inventory);

}  // namespace penstock::node::attribute
