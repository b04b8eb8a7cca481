// Devices of several models for tests of layouts.
#pragma once

#include <string>
#include <vector>

#include "node/partition/testing/profile_tables.h"

namespace penstock::node::partition::testing {

/// `device_id`: "0x20b0".
inline device::Facts DeviceOf(int index, const std::string& device_id, Profiles profiles) {
  device::Facts facts;
  facts.id = "GPU-" + std::to_string(index);
  facts.vendor = "nvidia";
  facts.index = index;
  facts.profiles = std::move(profiles);
  facts.details = {{"pci.vendor-id", "0x10de"},
                   {"pci.device-id", device_id},
                   {"pci.subsystem-vendor-id", "0x10de"},
                   {"pci.subsystem-device-id", "0x134f"}};
  return facts;
}

inline std::vector<const device::Facts*> PointersTo(const std::vector<device::Facts>& devices) {
  std::vector<const device::Facts*> pointers;
  for (const device::Facts& device : devices) pointers.push_back(&device);
  return pointers;
}

}  // namespace penstock::node::partition::testing
