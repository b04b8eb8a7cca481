// What a rule of a layout means for one device, in its driver's words. Pure.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/config/layouts.h"
#include "base/core/result.h"
#include "device/model.h"
#include "node/partition/plan.h"

namespace penstock::node::partition {

/// A vendor's words for partitions.
struct PartitionTerms {
  std::string mode;  ///< of the devices that are divided: "mig"
  std::string on;    ///< its value while a device is divided: "enabled"
  std::string off;   ///< and while it is whole: "disabled"
  /// The profile that a name in a layout means: names differ between drivers.
  std::function<Result<const device::PartProfile*>(std::string_view name,
                                                   std::span<const device::PartProfile> profiles)>
      find_profile;
};

struct DesiredByRule {
  DesiredDivision division;
  std::vector<std::string> remarks;  ///< names that the driver spells otherwise
};

/// kInvalidArgument, with all problems: the device cannot be divided, or has no such profiles. A
/// device without the mode is whole. While the driver lists no profiles, names stay as they are.
Result<DesiredByRule> DesiredOn(const device::Facts& device, const api::LayoutRule& rule,
                                const PartitionTerms& terms);

/// Why a device is not divided as the rule says, one clause; empty: it is. `mode_only`: its parts
/// do not count.
std::string WhyNotAsDesired(const Division& now, const DesiredDivision& desired, bool mode_only);

}  // namespace penstock::node::partition
