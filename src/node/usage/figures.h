// Which of a device's values usage is made of, by the families they are of on the vendor-neutral page. Keeps nothing.
#pragma once

#include <optional>
#include <vector>

#include "base/core/clock.h"
#include "base/core/quantity.h"
#include "device/dialect.h"
#include "node/sample/samples.h"

namespace penstock::node::usage {

/// Places in a vendor's table of quantities; nothing: its devices cannot be asked for it.
struct Roles {
  std::vector<device::QuantityId> utilization;  ///< the best one first: a device may lack that one
  std::optional<device::QuantityId> power, energy, memory;
};
Roles RolesOf(const device::Dialect& dialect);

/// When the values were asked for that were used last.
struct Used {
  base::WallTime utilization{}, power{}, energy{}, memory{}, processes{};
};

/// What a sample tells of a device that was not used before.
struct Figures {
  std::optional<double> utilization;  ///< 0 to 1
  std::optional<double> watts;
  std::optional<double> joules;  ///< a counter
  std::optional<base::Bytes> memory;
  bool processes = false;  ///< the sample's processes are new
  double most_watts = 0;   ///< that the device can take; 0: not known
};

/// Notes in `used` what it took.
Figures TakeFigures(const sample::DeviceSample& sample, const device::Dialect& dialect, const Roles& roles, Used& used);

}  // namespace penstock::node::usage
