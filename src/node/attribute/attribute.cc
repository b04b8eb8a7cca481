// Pods to leases, processes to leases. Reads nothing itself.
#include "node/attribute/attribute.h"

#include <algorithm>

namespace penstock::node::attribute {
namespace {

constexpr char kDoor[] = "kubelet";

std::string LeaseIdFor(const PodHolding& pod) {
  return "pod-" + (pod.pod_uid.empty() ? pod.namespace_name + "-" + pod.pod : pod.pod_uid) + "-" + pod.container;
}

bool Holds(const ledger::Lease& lease, const std::string& device) {
  return std::any_of(lease.slots.begin(), lease.slots.end(), [&device](const ledger::Slot& slot) { return slot.device == device; });
}

/// Whether the pod's devices are exactly the lease's.
bool Matches(const ledger::Lease& lease, const PodHolding& pod) {
  return lease.slots.size() == pod.devices.size() &&
         std::all_of(pod.devices.begin(), pod.devices.end(), [&](const std::string& device) { return Holds(lease, device); });
}

void Describe(ledger::Lease& lease, const PodHolding& pod) {
  lease.state = ledger::LeaseState::kHeld;
  const auto set = [](std::string& known, const std::string& told) {
    if (!told.empty()) known = told;
  };
  set(lease.pod, pod.pod);
  set(lease.pod_uid, pod.pod_uid);
  set(lease.namespace_name, pod.namespace_name);
  set(lease.container, pod.container);
}

bool SameContainer(const ledger::Lease& lease, const PodHolding& pod) {
  const auto same = [](const std::string& known, const std::string& told) { return known.empty() || told.empty() || known == told; };
  return same(lease.pod_uid, pod.pod_uid) && same(lease.namespace_name, pod.namespace_name) && same(lease.pod, pod.pod) &&
         same(lease.container, pod.container);
}

/// A container's cgroup carries its pod's uid, with '-' or, under the systemd driver, '_': ".../pod<uid>/..." or "...-pod<uid>.slice/...".
bool InPod(const os::ProcessInfo& process, const std::string& uid) {
  std::string systemd = uid;
  std::replace(systemd.begin(), systemd.end(), '-', '_');
  return std::any_of(process.cgroups.begin(), process.cgroups.end(), [&](const std::string& path) {
    return path.find("pod" + uid) != std::string::npos || path.find("pod" + systemd) != std::string::npos;
  });
}

bool InGroup(const os::ProcessInfo& process, const std::string& lease) {
  const std::string tail = "/" + lease;
  return std::any_of(process.cgroups.begin(), process.cgroups.end(),
                     [&](const std::string& path) { return path.ends_with(tail) || path.find(tail + "/") != std::string::npos; });
}

bool InTree(const os::ProcessInfo& process, const ledger::Lease& lease, const ProcessTable& table) {
  const os::ProcessInfo* at = &process;
  for (int depth = 0; depth < 64 && at != nullptr; ++depth) {
    for (const ledger::Process& root : lease.processes)
      if (root.pid == at->pid && root.start == at->start) return true;
    const auto parent = table.find(at->parent);
    at = parent == table.end() ? nullptr : &parent->second;
  }
  return false;
}

bool Belongs(const os::ProcessInfo& process, const ledger::Lease& lease, const ProcessTable& table) {
  if (lease.door != kDoor) return InGroup(process, lease.id) || InTree(process, lease, table);
  // While the holder is not known yet, whoever comes first is taken for it: nothing else can be told.
  return lease.pod_uid.empty() || InPod(process, lease.pod_uid);
}

}  // namespace

void ApplyPods(const std::vector<PodHolding>& pods, base::WallTime settled, base::WallTime now, ledger::Ledger& ledger) {
  const auto before = ledger.Get();
  std::set<std::string> confirmed;
  std::vector<const PodHolding*> unknown;
  for (const PodHolding& pod : pods) {
    const auto lease = std::find_if(before->leases.begin(), before->leases.end(), [&](const ledger::Lease& one) {
      return one.door == kDoor && Matches(one, pod) && SameContainer(one, pod);
    });
    if (lease == before->leases.end()) {
      unknown.push_back(&pod);
      continue;
    }
    confirmed.insert(lease->id);
    ledger::Lease described = *lease;
    Describe(described, pod);
    (void)ledger.Update(described);
  }
  for (const ledger::Lease& lease : before->leases)
    if (lease.door == kDoor && !confirmed.contains(lease.id) && (lease.state == ledger::LeaseState::kHeld || lease.since < settled))
      ledger.Release(lease.id);
  for (const PodHolding* pod : unknown) {
    ledger::Lease lease;
    lease.id = LeaseIdFor(*pod);
    lease.door = kDoor;
    lease.since = now;
    for (const std::string& device : pod->devices) lease.slots.push_back({device, device});
    Describe(lease, *pod);
    (void)ledger.Hand(std::move(lease));  // refused where a younger lease holds a slot: the kubelet's next list will say who is right
  }
}

ProcessTable ReadProcesses(const std::string& proc_root, const std::set<pid_t>& pids) {
  ProcessTable table;
  for (pid_t pid : pids) {
    while (pid > 0 && !table.contains(pid)) {
      auto info = os::ReadProcess(proc_root, pid);
      if (!info.ok()) break;
      const pid_t parent = info->parent;
      table.emplace(pid, *std::move(info));
      pid = parent;
    }
  }
  return table;
}

std::set<std::string> PodsWithProcesses(const std::string& proc_root, const std::set<std::string>& uids) {
  std::set<std::string> alive;
  if (uids.empty()) return alive;
  for (const pid_t pid : os::ListProcesses(proc_root)) {
    const auto process = os::ReadProcess(proc_root, pid);
    if (!process.ok()) continue;
    for (const std::string& uid : uids)
      if (InPod(*process, uid)) alive.insert(uid);
  }
  return alive;
}

std::set<pid_t> PidsOf(const inventory::Snapshot& inventory) {
  std::set<pid_t> pids;
  for (const inventory::Entry& entry : inventory.devices)
    if (entry.reading)
      for (const device::DeviceProcess& process : entry.reading->processes) pids.insert(process.pid);
  return pids;
}

Attributed Attribute(const inventory::Snapshot& inventory, const ledger::Snapshot& ledger, const ProcessTable& processes) {
  Attributed result;
  for (const inventory::Entry& entry : inventory.devices) {
    if (!entry.reading) continue;
    const ledger::Lease* lease = ledger.HolderOf(entry.facts->id);
    for (const device::DeviceProcess& used : entry.reading->processes) {
      const auto found = processes.find(used.pid);
      if (found == processes.end()) continue;  // ended since, or in a pid namespace that we do not see
      const ledger::Process process{used.pid, found->second.start, os::UserName(found->second.uid), found->second.command};
      auto& list =
          lease != nullptr && Belongs(found->second, *lease, processes) ? result.by_lease[lease->id] : result.outside[entry.facts->id];
      if (std::find(list.begin(), list.end(), process) == list.end()) list.push_back(process);
    }
  }
  return result;
}

}  // namespace penstock::node::attribute
