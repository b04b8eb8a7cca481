// `penstock plan`: asks the running agent what another configuration would change. Changes nothing.
#pragma once

#include <string>

#include "api/plan.h"
#include "app/penstock/common/table.h"
#include "app/penstock/common/verbs.h"

namespace penstock::app {

/// Prints the plan for a file, or with "" for the configuration in force; `explain` adds which
/// devices requests would get now. Returns the exit status: 0, also where something would change; 1
/// where the configuration has problems or no agent responds.
int Plan(const Common& common, const std::string& file, bool explain);

/// Formats the plan for users.
std::string ShowPlan(const api::Plan& plan, const Style& style);

}  // namespace penstock::app
