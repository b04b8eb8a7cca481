// Formats the agent's answer to `penstock plan`. Pure.
#pragma once

#include <string>

#include "api/plan.h"
#include "app/penstock/common/table.h"

namespace penstock::app {

/// Formats the plan for users.
std::string ShowPlan(const api::Plan& plan, const Style& style);

}  // namespace penstock::app
