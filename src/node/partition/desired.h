// What a rule of a layout means for one device, in its driver's words. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "api/config/layouts.h"
#include "base/core/result.h"
#include "device/dialect.h"
#include "device/model.h"
#include "node/partition/plan.h"

namespace penstock::node::partition {

struct DesiredByRule {
  DesiredDivision division;
  std::vector<std::string> remarks;  ///< names that the driver spells otherwise
};

/// kInvalidArgument, with all problems: the device cannot be divided, or has no such profiles. A
/// device without the mode is whole, unless its parts come with the mode. While the driver lists no
/// profiles, names stay as they are.
Result<DesiredByRule> DesiredOn(const device::Facts& device, const api::LayoutRule& rule,
                                const device::Dialect& dialect);

/// The mode that is desired otherwise, and the parts of the device at exactly the placements that
/// they have now.
DesiredDivision AsItIs(const Division& now, const DesiredDivision& desired);

/// Why a device is not divided as the rule says, one clause; empty: it is. `mode_only`: its parts
/// do not count.
std::string WhyNotAsDesired(const Division& now, const DesiredDivision& desired, bool mode_only);

}  // namespace penstock::node::partition
