#include "node/change/layout_state.h"

#include <algorithm>
#include <utility>

#include "base/core/strings.h"

namespace penstock::node::change {

bool IsGood(const DeviceDivision& division) {
  return division.state == "unselected" || division.state == "divided" ||
         division.state == "changed";
}

std::string Reasons(const std::vector<DeviceDivision>& devices) {
  std::vector<std::pair<std::string, std::string>> reasons;  // numbers, reason
  for (const DeviceDivision& one : devices) {
    if (IsGood(one)) continue;
    const auto same =
        std::ranges::find(reasons, one.reason, &decltype(reasons)::value_type::second);
    if (same == reasons.end())
      reasons.emplace_back(one.number, one.reason);
    else
      same->first += ", " + one.number;
  }
  std::vector<std::string> texts;
  for (const auto& [numbers, reason] : reasons) texts.push_back(numbers + ": " + reason);
  return base::Join(texts, "; ");
}

}  // namespace penstock::node::change
