#include "node/health/policy.h"

#include <algorithm>

namespace penstock::node::health {

using device::Severity;

device::Severity Apply(const std::vector<api::HealthRule>& policy, std::string_view kind,
                       std::int64_t code, Severity by_vendor) {
  const auto rule = std::find_if(policy.rbegin(), policy.rend(), [&](const api::HealthRule& one) {
    return one.kind == kind &&
           (one.codes.empty() || std::ranges::find(one.codes, code) != one.codes.end());
  });
  if (rule == policy.rend()) return by_vendor;
  if (rule->action == "at-least-drain") return std::max(by_vendor, Severity::kDrain);
  for (const Severity severity :
       {Severity::kIgnore, Severity::kWarn, Severity::kDrain, Severity::kReset, Severity::kGone})
    if (rule->action == ToString(severity)) return severity;
  return by_vendor;
}

}  // namespace penstock::node::health
