// Assigns pods and processes to leases.
#include "node/attribute/attribute.h"

#include <algorithm>

#include "node/share/assignment.h"

namespace penstock::node::attribute {
namespace {

/// The resource is part of the id where needed, because a container may hold several resources.
std::string LeaseIdFor(const PodHolding& pod, const ledger::Snapshot& ledger) {
  const std::string id = "pod-" +
                         (pod.pod_uid.empty() ? pod.namespace_name + "-" + pod.pod : pod.pod_uid) +
                         "-" + pod.container;
  return ledger.FindLease(id) == nullptr ? id : id + "-" + pod.resource;
}

bool SameName(const std::string& known, const std::string& reported) {
  return known.empty() || reported.empty() || known == reported;
}

/// Whether the pod's slots are exactly the lease's.
bool Matches(const ledger::Lease& lease, const PodHolding& pod) {
  return lease.slots.size() == pod.ids.size() &&
         std::ranges::all_of(lease.slots, [&pod](const ledger::Slot& slot) {
           return SameName(slot.resource, pod.resource) &&
                  std::ranges::find(pod.ids, slot.id) != pod.ids.end();
         });
}

void Describe(ledger::Lease& lease, const PodHolding& pod) {
  lease.state = ledger::LeaseState::kHeld;
  const auto set = [](std::string& known, const std::string& reported) {
    if (!reported.empty()) known = reported;
  };
  set(lease.pod, pod.pod);
  set(lease.pod_uid, pod.pod_uid);
  set(lease.namespace_name, pod.namespace_name);
  set(lease.container, pod.container);
}

bool SameContainer(const ledger::Lease& lease, const PodHolding& pod) {
  return SameName(lease.pod_uid, pod.pod_uid) &&
         SameName(lease.namespace_name, pod.namespace_name) && SameName(lease.pod, pod.pod) &&
         SameName(lease.container, pod.container);
}

/// The first slot of these leases that satisfies the predicate.
template <typename Predicate>
const ledger::Slot* FindSlot(const ledger::Leases& leases, Predicate predicate) {
  for (const ledger::Lease& lease : leases)
    for (const ledger::Slot& slot : lease.slots)
      if (predicate(slot)) return &slot;
  return nullptr;
}

const ledger::Slot* FindSlotOf(const std::vector<share::Offer>& offers, const std::string& device) {
  for (const share::Offer& offer : offers)
    for (const share::OfferedSlot& offered : offer.slots)
      if (offered.slot.device == device) return &offered.slot;
  return nullptr;
}

/// The smallest number of shares that a device must have, judging by the ids that pods hold.
int SharesBy(const std::vector<PodHolding>& pods, const std::string& device) {
  int shares = 1;
  for (const PodHolding& pod : pods)
    for (const std::string& id : pod.ids)
      if (share::DeviceOf(id) == device)
        shares = std::max(shares, ledger::WithShape({id, device, "", {}}).shape.shares);
  return shares;
}

/// Copies what the device is a part of from a slot of the same device.
void CopyAncestors(ledger::Slot& slot, const ledger::Leases& before,
                   const std::vector<share::Offer>& offers) {
  const ledger::Slot* known = FindSlotOf(offers, slot.device);
  if (known == nullptr)
    known = FindSlot(before, [&](const ledger::Slot& one) { return one.device == slot.device; });
  if (known == nullptr) return;
  slot.ancestors = known->ancestors;
  slot.capacity = known->capacity;
}

/// Completes the kubelet's id with what is known of it: from its holders `before`, from other
/// current or former holders on its device, or from the offers.
ledger::Slot ToSlot(const std::string& id, const std::string& resource,
                    const std::vector<PodHolding>& pods, const ledger::Leases& before,
                    const ledger::Leases& now, const std::vector<share::Offer>& offers) {
  ledger::Slot likely = ledger::WithShape({id, share::DeviceOf(id), resource, {}});
  CopyAncestors(likely, before, offers);
  if (likely.id == likely.device) return likely;
  const auto same = [&](const ledger::Slot& slot) {
    return slot.id == id && SameName(slot.resource, resource);
  };
  const auto beside = [&](const ledger::Slot& slot) {
    return slot.device == likely.device && slot.id != slot.device;
  };
  const ledger::Slot* known = FindSlot(before, same);
  if (known == nullptr) known = FindSlot(now, beside);
  if (known == nullptr) known = FindSlot(before, beside);
  const bool held = known != nullptr;
  if (!held) known = FindSlotOf(offers, likely.device);
  if (known == nullptr || known->shape.sharing == device::Sharing::kNone) return likely;
  ledger::Slot slot = likely;
  slot.shape = known->shape;
  if (!held || slot.shape.sharing == device::Sharing::kTimeSlicing)
    slot.shape.shares = std::max(slot.shape.shares, SharesBy(pods, likely.device));
  if (slot.shape == known->shape) slot.limits = known->limits;
  if (slot.resource.empty()) slot.resource = known->resource;
  return slot;
}

/// A container's cgroup contains its pod's uid, with '-' or, under the systemd driver, '_':
/// ".../pod<uid>/..." or "...-pod<uid>.slice/...".
bool InPod(const os::ProcessInfo& process, const std::string& uid) {
  std::string systemd = uid;
  std::replace(systemd.begin(), systemd.end(), '-', '_');
  return std::ranges::any_of(process.cgroups, [&](const std::string& path) {
    return path.find("pod" + uid) != std::string::npos ||
           path.find("pod" + systemd) != std::string::npos;
  });
}

bool InGroup(const os::ProcessInfo& process, const std::string& group) {
  return !group.empty() && std::ranges::any_of(process.cgroups, [&](const std::string& path) {
    return (path + "/").starts_with(group + "/");
  });
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

bool Belongs(const os::ProcessInfo& process, const ledger::Lease& lease,
             const ProcessTable& table) {
  if (!api::FindAllocator(lease.allocator).is_for_pods())
    return InGroup(process, lease.cgroup) || InTree(process, lease, table);
  return !lease.pod_uid.empty() && InPod(process, lease.pod_uid);
}

using Leases = std::vector<const ledger::Lease*>;

std::map<std::string_view, Leases> LeasesByDevice(const ledger::Snapshot& ledger) {
  std::map<std::string_view, Leases> leases;
  for (const ledger::Lease& lease : ledger.leases)
    for (const ledger::Slot& slot : lease.slots) {
      Leases& of_device = leases[slot.device];
      if (of_device.empty() || of_device.back() != &lease) of_device.push_back(&lease);
    }
  return leases;
}

/// Null for an outside process.
const ledger::Lease* OwnerOf(const os::ProcessInfo& process, bool graphics_only,
                             const Leases& leases, const ProcessTable& table) {
  for (const ledger::Lease* lease : leases)
    if (Belongs(process, *lease, table)) return lease;
  if (graphics_only) return nullptr;
  // While a holder is not known yet, any process is taken for it: there is no way to distinguish
  // them.
  const auto unknown = std::ranges::find_if(leases, [](const ledger::Lease* lease) {
    return api::FindAllocator(lease->allocator).is_for_pods() && lease->pod_uid.empty();
  });
  return unknown == leases.end() ? nullptr : *unknown;
}

}  // namespace

void ApplyPods(const std::vector<PodHolding>& pods, std::optional<base::WallTime> cutoff,
               base::WallTime now, ledger::Ledger& ledger,
               const std::vector<share::Offer>& offers) {
  const auto before = ledger.Get();
  std::set<std::string> confirmed;
  std::vector<const PodHolding*> unknown;
  for (const PodHolding& pod : pods) {
    const auto lease = std::ranges::find_if(before->leases, [&](const ledger::Lease& one) {
      return one.allocator == api::kKubeletAllocator && Matches(one, pod) &&
             SameContainer(one, pod);
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
    if (cutoff && lease.allocator == api::kKubeletAllocator && !confirmed.contains(lease.id) &&
        (lease.state == ledger::LeaseState::kHeld || lease.since < *cutoff))
      ledger.Release(lease.id);
  for (const PodHolding* pod : unknown) {
    const auto others = ledger.Get();
    ledger::Lease lease;
    lease.id = LeaseIdFor(*pod, *others);
    lease.allocator = api::kKubeletAllocator;
    lease.since = now;
    for (const std::string& id : pod->ids)
      lease.slots.push_back(
          ToSlot(id, pod->resource, pods, before->leases, others->leases, offers));
    Describe(lease, *pod);
    // Refused where a younger lease holds a slot: the kubelet's next list decides which is right.
    (void)ledger.Add(std::move(lease));
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

std::set<std::string> PodsWithProcesses(const std::string& proc_root,
                                        const std::set<std::string>& uids) {
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
      for (const device::DeviceProcess& process : entry.reading->processes)
        pids.insert(process.pid);
  return pids;
}

ledger::Attributed Attribute(const inventory::Snapshot& inventory, const ledger::Snapshot& ledger,
                             const ProcessTable& processes) {
  ledger::Attributed result;
  const auto leases = LeasesByDevice(ledger);
  for (const inventory::Entry& entry : inventory.devices) {
    if (!entry.reading) continue;
    const auto of_device = leases.find(entry.facts->id);
    for (const device::DeviceProcess& used : entry.reading->processes) {
      const auto found = processes.find(used.pid);
      if (found == processes.end())
        continue;  // ended meanwhile, or in a pid namespace that this process does not see
      const ledger::Process process{used.pid, found->second.start, os::UserName(found->second.uid),
                                    found->second.command};
      const ledger::Lease* lease =
          of_device == leases.end()
              ? nullptr
              : OwnerOf(found->second, used.graphics_only, of_device->second, processes);
      auto& strangers = used.graphics_only ? result.graphics : result.outside;
      auto& list = lease != nullptr ? result.by_lease[lease->id] : strangers[entry.facts->id];
      if (std::ranges::find(list, process) == list.end()) list.push_back(process);
    }
  }
  return result;
}

}  // namespace penstock::node::attribute
