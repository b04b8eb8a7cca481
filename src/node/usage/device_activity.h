// Extracts from a device's sample the values that usage is computed from, found by their
// vendor-neutral families.
#pragma once

#include <optional>
#include <vector>

#include "base/core/clock.h"
#include "base/core/quantity.h"
#include "device/dialect.h"
#include "node/sample/samples.h"

namespace penstock::node::usage {

/// Indexes into a vendor's table of quantities; nothing: its devices do not have the quantity.
struct Roles {
  std::vector<device::QuantityId> utilization;  ///< the best one first: a device may lack that one
  std::optional<device::QuantityId> power, energy, memory;
};
Roles RolesOf(const device::Dialect& dialect);

/// When the last used values were requested.
struct Used {
  base::WallTime utilization{}, power{}, energy{}, memory{}, processes{};
};

/// The values of a sample that were not used before.
struct DeviceActivity {
  std::optional<double> utilization;  ///< 0 to 1
  std::optional<double> watts;
  std::optional<double> joules;  ///< a counter
  std::optional<base::Bytes> memory;
  bool processes = false;  ///< the sample's processes are new
  double most_watts = 0;   ///< the most that the device can draw; 0: unknown
};

/// Records in `used` the values that it returns.
DeviceActivity TakeActivity(const sample::DeviceSample& sample, const device::Dialect& dialect,
                            const Roles& roles, Used& used);

}  // namespace penstock::node::usage
