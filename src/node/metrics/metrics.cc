// The families of the metrics page. Calls no vendor, reads no file.
#include "node/metrics/metrics.h"

#include <map>
#include <utility>

#include "node/metrics/exposition.h"
#include "node/metrics/families.h"

namespace penstock::node::metrics {

namespace {

using device::HealthState;
using inventory::Entry;
using Type = Exposition::Type;

std::vector<Device> DevicesOf(const inventory::Snapshot& inventory) {
  std::vector<Device> devices;
  devices.reserve(inventory.devices.size());
  for (const Entry& entry : inventory.devices) {
    Device device{.entry = &entry};
    device.labels.Add("device", entry.facts->id);
    device.labels.Add("index", entry.facts->index < 0 ? "" : std::to_string(entry.facts->index));
    device.labels.Add("model", entry.facts->model);
    devices.push_back(std::move(device));
  }
  return devices;
}

void AddInfo(const std::vector<Device>& devices, const inventory::Snapshot& inventory, Exposition& page) {
  page.Family("accelerator_info", Type::kGauge, "Facts about an accelerator, as labels; the value is always 1.");
  for (const Device& device : devices) {
    const device::Facts& facts = *device.entry->facts;
    const auto* vendor = inventory.FindVendor(facts.vendor);
    Labels labels = device.labels;
    labels.Add("vendor", facts.vendor);
    labels.Add("architecture", facts.architecture);
    labels.Add("pci", facts.pci ? ToString(*facts.pci) : "");
    labels.Add("numa", facts.numa_node ? std::to_string(*facts.numa_node) : "");
    labels.Add("driver", vendor != nullptr && vendor->driver ? vendor->driver->version : "");
    page.Add(labels, std::uint64_t{1});
  }
}

void AddReads(const std::vector<Device>& devices, Exposition& page) {
  page.Family("accelerator_read_timestamp_seconds", Type::kGauge, "When an accelerator was last looked at, in Unix time.");
  for (const Device& device : devices) {
    if (device.entry->reading == nullptr) continue;
    page.Add(device.labels, std::chrono::duration<double>(device.entry->read_at.time_since_epoch()).count());
  }
}

void AddMemory(const std::vector<Device>& devices, Exposition& page) {
  page.Family("accelerator_memory_bytes", Type::kGauge, "Memory of an accelerator.");
  for (const Device& device : devices)
    if (device.entry->facts->memory.count > 0) page.Add(device.labels, device.entry->facts->memory.count);
}

void AddHolders(const std::vector<Device>& devices, const ledger::Snapshot& ledger, Exposition& page) {
  page.Family("accelerator_held", Type::kGauge, "Who was given an accelerator, as labels; the value is always 1.");
  for (const Device& device : devices) {
    for (const ledger::Lease& lease : ledger.leases) {
      for (const ledger::Slot& slot : lease.slots) {
        if (slot.device != device.entry->facts->id) continue;
        Labels labels = device.labels;
        labels.Add("slot", slot.id).Add("door", lease.door).Add("kind", lease.door == share::kKubeletDoor ? "pod" : "run");
        labels.Add("namespace", lease.namespace_name).Add("pod", lease.pod).Add("container", lease.container);
        labels.Add("user", lease.user).Add("lease", lease.id);
        page.Add(labels, std::uint64_t{1});
      }
    }
  }
  page.Family("accelerator_outside_processes", Type::kGauge, "Processes on an accelerator that were not given it.");
  for (const Device& device : devices) {
    const auto found = ledger.outside.find(device.entry->facts->id);
    page.Add(device.labels, std::uint64_t{found == ledger.outside.end() ? 0 : found->second.size()});
  }
}

void AddDrivers(const inventory::Snapshot& inventory, Exposition& page) {
  page.Family("penstock_driver_present", Type::kGauge, "Whether the driver of a vendor can be used.");
  for (const inventory::VendorEntry& vendor : inventory.vendors) {
    Labels labels;
    labels.Add("vendor", vendor.vendor).Add("version", vendor.driver ? vendor.driver->version : "");
    page.Add(labels, std::uint64_t{vendor.driver != nullptr});
  }
}

void AddLeases(const ledger::Snapshot& ledger, Exposition& page) {
  std::map<std::pair<std::string_view, std::string_view>, std::uint64_t> counts;
  for (const std::string_view door : {share::kKubeletDoor, share::kLocalDoor})
    for (const std::string_view state : {"handed", "held"}) counts[{door, state}] = 0;
  for (const ledger::Lease& lease : ledger.leases) ++counts[{lease.door, lease.state == ledger::LeaseState::kHeld ? "held" : "handed"}];
  page.Family("penstock_leases", Type::kGauge, "Leases in the ledger.");
  for (const auto& [key, count] : counts) page.Add(Labels().Add("door", key.first).Add("state", key.second), count);
}

void AddReloads(const ConfigReloads& reloads, Exposition& page) {
  page.Family("penstock_config_reloads_total", Type::kCounter, "New configurations since the agent started, by what became of them.");
  page.Add(Labels().Add("result", "applied"), reloads.applied);
  page.Add(Labels().Add("result", "refused"), reloads.refused);
  page.Family("penstock_config_last_reload_successful", Type::kGauge, "Whether the newest configuration is in force.");
  page.Add({}, std::uint64_t{reloads.last_successful});
  if (reloads.last_applied == base::WallTime{}) return;
  page.Family("penstock_config_applied_timestamp_seconds", Type::kGauge, "When a configuration was last applied, in Unix time.");
  page.Add({}, std::chrono::duration<double>(reloads.last_applied.time_since_epoch()).count());
}

void AddApiRequests(const ApiRequests& requests, Exposition& page) {
  page.Family("penstock_api_requests_total", Type::kCounter, "What was asked of the API server since the agent started.");
  page.Add(Labels().Add("kind", "read"), requests.reads);
  page.Add(Labels().Add("kind", "write"), requests.writes);
  page.Add(Labels().Add("kind", "watch"), requests.streams);
  page.Family("penstock_api_retries_total", Type::kCounter, "Requests to the API server that were made again because it asked for that.");
  page.Add({}, requests.retries);
  page.Family("penstock_api_failures_total", Type::kCounter, "Requests to the API server that ended in an error.");
  page.Add({}, requests.failures);
}

void AddOurselves(const Figures& figures, Exposition& page) {
  page.Family("penstock_queue_length", Type::kGauge, "Requests that wait for accelerators.");
  page.Add({}, std::uint64_t{figures.queue_length});
  page.Family("penstock_process_resident_memory_bytes", Type::kGauge, "Resident memory of a process of Penstock.");
  for (const ProcessCost& cost : figures.processes) page.Add(Labels().Add("process", cost.process), cost.resident_bytes);
  page.Family("penstock_process_cpu_seconds_total", Type::kCounter, "User and system time that a process of Penstock has used.");
  for (const ProcessCost& cost : figures.processes) page.Add(Labels().Add("process", cost.process), cost.cpu_seconds);
  page.Family("penstock_build_info", Type::kGauge, "Version of the agent, as a label; the value is always 1.");
  page.Add(Labels().Add("version", figures.version), std::uint64_t{1});
}

}  // namespace

std::string Render(const inventory::Snapshot& inventory, const ledger::Snapshot& ledger, const Figures& figures) {
  Exposition page;
  const std::vector<Device> devices = DevicesOf(inventory);
  AddInfo(devices, inventory, page);
  AddHealth(devices, figures, page);
  AddMemory(devices, page);
  AddReads(devices, page);
  AddSharing(devices, ledger, figures, page);
  AddHolders(devices, ledger, page);
  AddDrivers(inventory, page);
  AddLeases(ledger, page);
  AddReloads(figures.reloads, page);
  if (figures.api_requests) AddApiRequests(*figures.api_requests, page);
  AddOurselves(figures, page);
  return page.Take();
}

}  // namespace penstock::node::metrics
