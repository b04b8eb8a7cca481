// Adds the facts and the health state of the devices.
#include <array>
#include <string>

#include "node/metrics/families.h"

namespace penstock::node::metrics {
namespace {

using device::HealthState;

/// Each state with its label as text.
constexpr std::array kStates = {std::pair(HealthState::kHealthy, R"(state="healthy")"),
                                std::pair(HealthState::kUnhealthy, R"(state="unhealthy")"),
                                std::pair(HealthState::kUnknown, R"(state="unknown")"),
                                std::pair(HealthState::kGone, R"(state="gone")")};

void AddInfo(const std::vector<DeviceRow>& devices, const inventory::Snapshot& inventory,
             Exposition& page) {
  page.Family("accelerator_info");
  for (const DeviceRow& device : devices) {
    const device::Facts& facts = *device.entry->facts;
    const auto* vendor = inventory.FindVendor(facts.vendor);
    LabelText labels;
    labels.Add("vendor", facts.vendor).Add("architecture", facts.architecture);
    labels.Add("pci", facts.pci ? ToString(*facts.pci) : "");
    labels.Add("numa", facts.numa_node ? std::to_string(*facts.numa_node) : "");
    labels.Add("driver", vendor != nullptr && vendor->driver ? vendor->driver->version : "");
    labels.Add("part_of", facts.parent).Add("profile", facts.profile);
    page.Add(device.labels, labels.text(), true);
  }
}

}  // namespace

void AddDevices(const std::vector<DeviceRow>& devices, const inventory::Snapshot& inventory,
                Exposition& page) {
  AddInfo(devices, inventory, page);
  page.Family("accelerator_memory_bytes");
  for (const DeviceRow& device : devices)
    if (device.entry->facts->memory.count > 0)
      page.Add(device.labels, device.entry->facts->memory.count);
  page.Family("accelerator_healthy");
  for (const DeviceRow& device : devices)
    page.Add(device.labels, {}, device.entry->health.state == HealthState::kHealthy);
  page.Family("accelerator_health_state");
  for (const DeviceRow& device : devices)
    for (const auto& [state, label] : kStates)
      page.Add(device.labels, label, device.entry->health.state == state);
  page.Family("accelerator_read_timestamp_seconds");
  for (const DeviceRow& device : devices)
    if (device.entry->reading != nullptr) page.Add(device.labels, UnixTime(device.entry->read_at));
}

}  // namespace penstock::node::metrics
