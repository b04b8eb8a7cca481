// Pure, except for this process's own pid.
#include "view/report.h"

#include <set>

#include <unistd.h>

#include "view/report_shares.h"

namespace penstock::view {

namespace {

using node::ledger::Lease;
using node::ledger::LeaseState;
using node::ledger::Process;

api::HolderReport HolderOf(const Lease& lease, const node::ledger::Slot& slot,
                           const device::Facts* facts) {
  api::HolderReport holder;
  holder.slot = slot.id;
  holder.device = slot.device;
  if (facts != nullptr) {
    holder.index = facts->index;
    holder.number = facts->number;
  }
  holder.state = lease.state == LeaseState::kHeld ? "held" : "handed";
  holder.kind = api::FindAllocator(lease.allocator).holder;
  holder.lease = lease.id;
  for (const Process& process : lease.processes) holder.pids.push_back(process.pid);
  holder.user = lease.user;
  holder.command = lease.command;
  if (!lease.processes.empty()) {
    if (holder.user.empty()) holder.user = lease.processes.front().user;
    if (holder.command.empty()) holder.command = lease.processes.front().command;
  }
  holder.pod = lease.pod;
  holder.namespace_name = lease.namespace_name;
  holder.container = lease.container;
  holder.enforcement = ToString(lease.enforcement);
  holder.since = base::FormatTime(lease.since);
  return holder;
}

using ByDevice = std::map<std::string, std::vector<Process>>;

/// Adds the processes on a device that was not allocated to them; `kind`: "outside", "graphics".
void AddOutsideProcesses(const ByDevice& processes, const std::string& kind,
                         const device::Facts& facts, std::vector<api::HolderReport>& holders) {
  const auto found = processes.find(facts.id);
  if (found == processes.end()) return;
  for (const Process& process : found->second) {
    api::HolderReport& holder = holders.emplace_back();
    holder.device = facts.id;
    holder.index = facts.index;
    holder.number = facts.number;
    holder.state = kind;
    holder.kind = kind;
    holder.pids = {process.pid};
    holder.user = process.user;
    holder.command = process.command;
  }
}

std::vector<api::HolderReport> HoldersOf(const device::Facts& facts,
                                         const node::ledger::Snapshot& ledger) {
  std::vector<api::HolderReport> holders;
  for (const Lease& lease : ledger.leases)
    for (const auto& slot : lease.slots)
      if (slot.device == facts.id) holders.push_back(HolderOf(lease, slot, &facts));
  AddOutsideProcesses(ledger.outside, "outside", facts, holders);
  return holders;
}

/// Holders of devices that no longer exist: their programs still run.
std::vector<api::HolderReport> HoldersOfRemoved(const node::inventory::Snapshot& inventory,
                                                const node::ledger::Snapshot& ledger) {
  std::vector<api::HolderReport> holders;
  for (const Lease& lease : ledger.leases) {
    for (const auto& slot : lease.slots) {
      if (inventory.Find(slot.device) != nullptr) continue;
      const auto successor = std::ranges::find_if(inventory.devices, [&slot](const auto& entry) {
        return entry.replaced_id == slot.device;
      });
      api::HolderReport& holder = holders.emplace_back(HolderOf(lease, slot, nullptr));
      holder.note = slot.device + (successor == inventory.devices.end()
                                       ? " is no longer present"
                                       : " was replaced by " + successor->facts->id);
    }
  }
  return holders;
}

void AddAssignment(const node::share::Assignments& assignments, api::DeviceReport& device) {
  const auto assignment = assignments.find(device.id);
  if (assignment == assignments.end()) return;
  device.allocator = assignment->second.allocator;
  device.on_demand = assignment->second.on_demand && device.parent.empty();
  if (device.withheld.empty()) device.withheld = assignment->second.reason;
}

void AddHealth(const node::health::HealthStatuses& statuses, api::DeviceReport& device) {
  const auto status = statuses.find(device.id);
  if (status == statuses.end()) return;
  if (status->second.probation_until)
    device.probation_until = base::FormatTime(*status->second.probation_until);
  device.relapses = status->second.relapses;
  device.warning = status->second.warning;
}

api::DeviceReport DeviceOf(const node::inventory::Entry& entry,
                           const node::ledger::Snapshot& ledger, const ReportContext& context,
                           const SharesReport& shares) {
  const device::Facts& facts = *entry.facts;
  api::DeviceReport device;
  device.id = facts.id;
  device.vendor = facts.vendor;
  device.model = facts.model;
  device.index = facts.index;
  device.number = facts.number;
  device.parent = facts.parent;
  device.profile = facts.profile;
  device.kind = ToString(facts.kind);
  if (facts.pci) device.pci = ToString(*facts.pci);
  device.numa = facts.numa_node;
  device.memory_bytes = facts.memory.count;
  device.health_state = ToString(entry.health.state);
  device.health_reason = entry.health.reason;
  device.health_since = base::FormatTime(entry.health.since);
  device.serial = facts.serial;
  device.replaced = entry.replaced;
  if (entry.withheld != node::inventory::kDivided) device.withheld = entry.withheld;
  if (context.assignments != nullptr) AddAssignment(*context.assignments, device);
  if (context.health != nullptr) AddHealth(*context.health, device);
  shares.Fill(device);
  if (context.samples != nullptr)
    if (const auto* sample = context.samples->Find(facts.id))
      device.telemetry_problem = node::sample::ProblemOf(*sample);
  device.holders = HoldersOf(facts, ledger);
  AddOutsideProcesses(ledger.graphics, "graphics", facts, device.graphics);
  return device;
}

/// A reason from the device's own facts or from the configuration takes precedence.
void AddWithheld(const std::map<std::string, std::string>& withheld,
                 std::vector<api::DeviceReport>& devices) {
  for (api::DeviceReport& device : devices) {
    const auto found = withheld.find(device.id);
    if (found == withheld.end()) continue;
    device.free = 0;
    if (device.withheld.empty()) device.withheld = found->second;
  }
}

api::VendorReport VendorOf(const node::inventory::VendorEntry& entry) {
  api::VendorReport vendor;
  vendor.vendor = entry.vendor;
  vendor.reason = entry.reason;
  if (entry.driver) {
    vendor.driver = entry.driver->version;
    vendor.runtime = entry.driver->runtime_version;
  }
  if (entry.driver && entry.place) {
    vendor.driver_source = entry.place->container ? "container" : "host";
    vendor.driver_root = entry.place->host_driver_root;
    vendor.driver_since = base::FormatTime(entry.since);
  }
  return vendor;
}

/// The reason why the driver does not answer takes precedence.
void AddUnusable(const std::map<std::string, std::string>& unusable,
                 std::vector<api::VendorReport>& vendors) {
  for (api::VendorReport& vendor : vendors)
    if (const auto found = unusable.find(vendor.vendor);
        found != unusable.end() && vendor.reason.empty())
      vendor.reason = found->second;
}

/// The enforcement of new allocations is that of the open allocators.
std::vector<std::string> EnforcementOf(const std::vector<api::AllocatorReport>& allocators) {
  std::set<std::string> kinds;
  for (const auto& allocator : allocators)
    if (!allocator.enforcement.empty()) kinds.insert(allocator.enforcement);
  return {kinds.begin(), kinds.end()};
}

}  // namespace

api::Report MakeReport(const node::inventory::Snapshot& inventory,
                       const node::ledger::Snapshot& ledger, const ReportContext& context) {
  api::Report report;
  // Each of these only grows, so their sum distinguishes any two reports.
  report.generation = inventory.facts_generation + inventory.state_generation + ledger.generation;
  report.node = context.node;
  report.version = PENSTOCK_VERSION;
  report.agent_pid = ::getpid();
  for (const auto& vendor : inventory.vendors) report.vendors.push_back(VendorOf(vendor));
  if (context.unusable_drivers) AddUnusable(context.unusable_drivers(), report.vendors);
  static const std::vector<node::share::Offer> kNothing;
  static const node::share::Assignments kNoAssignments;
  static const device::SharedDevices kNoServers;
  const SharesReport shares(context.offers != nullptr ? *context.offers : kNothing, ledger,
                            context.assignments != nullptr ? *context.assignments : kNoAssignments,
                            context.servers != nullptr ? *context.servers : kNoServers);
  for (const auto& entry : inventory.devices)
    report.devices.push_back(DeviceOf(entry, ledger, context, shares));
  for (const api::DeviceReport& part : report.devices)
    for (api::DeviceReport& device : report.devices)
      if (!part.parent.empty() && device.id == part.parent) ++device.parts;
  report.removed = HoldersOfRemoved(inventory, ledger);
  if (context.withheld) AddWithheld(context.withheld(), report.devices);
  report.servers = shares.Servers();
  if (context.allocators) report.allocators = context.allocators();
  report.enforcement = EnforcementOf(report.allocators);
  if (context.configuration) report.configuration = context.configuration();
  if (context.layout) report.layout = context.layout();
  report.next_kernel = context.next_kernel;
  if (context.cdi) report.cdi = context.cdi();
  if (context.validation) report.validation = context.validation(report);
  report.conditions = ConditionsOf(report);
  if (context.times != nullptr) context.times->Stamp(report.conditions, context.now);
  return report;
}

}  // namespace penstock::view
