// Inventories of Acme's devices. For tests only.
#pragma once

#include <memory>
#include <vector>

#include "device/testing/acme.h"
#include "node/inventory/inventory.h"

namespace penstock::node::inventory {

/// Acme with a loaded driver.
inline VendorEntry AcmeVendor() {
  return {"acme", std::make_shared<const device::Driver>(device::testing::AcmeDriver()), ""};
}

/// The first `count` devices of a machine with `of`.
inline std::vector<device::Facts> AcmeDevices(int count, int of) {
  std::vector<device::Facts> devices;
  for (int i = 0; i < count; ++i) devices.push_back(device::testing::AcmeDevice(i, of));
  return devices;
}

/// A machine with linked pairs (0,1), (2,3), ..., all healthy.
inline Snapshot AcmeSnapshot(int count) {
  Snapshot snapshot{.vendors = {AcmeVendor()}, .devices = {}};
  for (const device::Facts& facts : AcmeDevices(count, count))
    snapshot.devices.push_back({std::make_shared<const device::Facts>(facts),
                                {device::HealthState::kHealthy, "", {}},
                                nullptr,
                                {}});
  return snapshot;
}

/// Reports Acme's driver and these devices, all healthy.
inline void ReportHealthy(Inventory& inventory, const std::vector<device::Facts>& devices,
                          base::WallTime now) {
  inventory.SetVendor(AcmeVendor());
  inventory.SetFacts("acme", devices, "", now);
  for (const device::Facts& device : devices)
    inventory.SetHealth(device.id, device::HealthState::kHealthy, "", now);
}

}  // namespace penstock::node::inventory
