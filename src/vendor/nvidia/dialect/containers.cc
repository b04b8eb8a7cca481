// The driver's files by name.
#include "vendor/nvidia/dialect/containers.h"

namespace penstock::vendor::nvidia {

std::vector<std::string> CdiDeviceNames(const device::Facts& device, std::span<const device::CdiNames> strategies) {
  std::vector<std::string> names;
  for (const device::CdiNames strategy : strategies) {
    if (strategy == device::CdiNames::kIndex) names.push_back(std::to_string(device.index));
    if (strategy == device::CdiNames::kUuid) names.push_back(device.id);
    if (strategy == device::CdiNames::kTypeIndex) names.push_back("gpu" + std::to_string(device.index));
  }
  return names;
}

device::ContainerDriver ContainerDriverOf(const device::Driver&) { return {}; }

std::string_view CapabilityOf(std::string_view) { return ""; }

}  // namespace penstock::vendor::nvidia
