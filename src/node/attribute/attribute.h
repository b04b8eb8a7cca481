// Joins what the kubelet, cgroups, processes and drivers say into the ledger: who holds which lease, and who is on a device without one.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/executor.h"
#include "device/model.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offer.h"
#include "os/process.h"

namespace penstock::node::attribute {

/// A container that holds devices, as the kubelet tells it. `pod_uid` and the names may be missing, whichever source knows them.
struct PodHolding {
  std::string pod_uid, pod, namespace_name, container;
  std::vector<std::string> ids;  ///< of slots: "GPU-...", "GPU-...::3"
  std::string resource = {};     ///< the name under which it holds them; empty: not known
  bool operator==(const PodHolding&) const = default;
};

/// What the processes of this machine look like, for the pids asked about: read on an I/O thread, given to the pure functions below.
using ProcessTable = std::map<pid_t, os::ProcessInfo>;

/// Lets kubelet leases say what pods hold: makes leases for pods that none is known of (after a restart of the agent), fills in names,
/// moves handed to held, and releases leases that no pod holds any more. A lease whose pod was never named is kept until it is older than
/// `settled`: it may be younger than the kubelet's own list; without it none is released: `pods` may lack some. The kubelet knows ids only:
/// of what device a share is one is told by who had it before, else by others on the device, else by `offers`.
void ApplyPods(const std::vector<PodHolding>& pods, std::optional<base::WallTime> settled, base::WallTime now, ledger::Ledger& ledger,
               const std::vector<share::Offer>& offers = {});

/// Which of the driver's processes belong to which lease of their device (by cgroup: "pod<uid>" of the lease's pod, or the lease's own
/// group; by process tree for leases that are visibility only; else to one whose holder is not known yet), and who is outside of them all.
/// One outside that only draws (a display server is on every GPU that it finds) is told apart, and never taken for a holder not known yet.
struct Attributed {
  std::map<std::string, std::vector<ledger::Process>> by_lease;
  std::map<std::string, std::vector<ledger::Process>> outside;   ///< device id → processes
  std::map<std::string, std::vector<ledger::Process>> graphics;  ///< likewise
};
Attributed Attribute(const inventory::Snapshot& inventory, const ledger::Snapshot& ledger, const ProcessTable& processes);

/// Looks up processes and their ancestors in /proc; those that have ended are left out. Blocks: on an I/O thread.
ProcessTable ReadProcesses(const std::string& proc_root, const std::set<pid_t>& pids);

/// Those of the pods (by uid) that have a process. Blocks: on an I/O thread.
std::set<std::string> PodsWithProcesses(const std::string& proc_root, const std::set<std::string>& uids);

/// The pids to look up for Attribute.
std::set<pid_t> PidsOf(const inventory::Snapshot& inventory);

}  // namespace penstock::node::attribute
