// Formats the explanation of a node's capacity, or of where a pod can run, as text or JSON. Pure.
#pragma once

#include <string>

#include "analysis/explain/explain.h"
#include "analysis/explain/placement.h"
#include "app/penstock/common/table.h"

namespace penstock::app {

std::string ShowExplanation(const analysis::Explanation& explanation, const Style& style,
                            base::WallTime now);
std::string ExplanationToJson(const analysis::Explanation& explanation);

std::string ShowPlacement(const analysis::PodPlacement& placement, const Style& style);
std::string PlacementToJson(const analysis::PodPlacement& placement);

}  // namespace penstock::app
