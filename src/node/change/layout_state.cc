#include "node/change/layout_state.h"

#include "base/core/strings.h"

namespace penstock::node::change {

bool IsGood(const DeviceDivision& division) {
  return division.state == "unselected" || division.state == "divided" ||
         division.state == "changed";
}

std::string Reasons(const std::vector<DeviceDivision>& devices) {
  std::vector<std::string> reasons;
  for (const DeviceDivision& one : devices)
    if (!IsGood(one)) reasons.push_back(one.number + ": " + one.reason);
  return base::Join(reasons, "; ");
}

}  // namespace penstock::node::change
