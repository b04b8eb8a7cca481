// Formats the explanation of a node's capacity as text or JSON. Pure.
#pragma once

#include <string>

#include "analysis/explain/explain.h"
#include "app/penstock/common/table.h"

namespace penstock::app {

std::string ShowExplanation(const analysis::Explanation& explanation, const Style& style,
                            base::WallTime now);
std::string ExplanationToJson(const analysis::Explanation& explanation);

}  // namespace penstock::app
