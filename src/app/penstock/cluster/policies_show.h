// Formats the policies of a cluster, as the operator reports in them, as tables or JSON. Pure.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "app/penstock/cluster/cluster.h"
#include "app/penstock/common/table.h"

namespace penstock::app {

/// One object: its resource as kubectl names it ("clusterpolicy"), and the object.
struct PolicyToShow {
  std::string resource;
  Json object;
};

/// One line per object.
std::string ShowPolicies(const std::vector<PolicyToShow>& policies, const Style& style,
                         base::WallTime now);

/// All that the operator says of one object: conditions, nodes that are not ready, nodes that wait
/// for a driver.
std::string ShowPolicy(const PolicyToShow& policy, const Style& style, base::WallTime now);

/// The object {"policies": [...]}: of each the resource, the name, the
/// namespace if it has one, and the status as it is.
std::string PoliciesToJson(const std::vector<PolicyToShow>& policies);

}  // namespace penstock::app
