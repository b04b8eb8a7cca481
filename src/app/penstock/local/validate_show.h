// Prints the steps of a node's validation. Pure.
#pragma once

#include <string>
#include <vector>

#include "api/report.h"
#include "app/penstock/common/table.h"
#include "base/core/clock.h"

namespace penstock::app {

/// A row for each step.
std::string ShowSteps(const std::vector<api::ValidationStep>& steps, const Style& style,
                      base::WallTime now);

/// A paragraph for each step: what was found, and what to do.
std::string ExplainSteps(const std::vector<api::ValidationStep>& steps, const Style& style,
                         base::WallTime now);

}  // namespace penstock::app
