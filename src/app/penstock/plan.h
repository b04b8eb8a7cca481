// `penstock plan`: what another configuration would change, asked of the running agent. Changes nothing.
#pragma once

#include <string>

#include "api/plan.h"
#include "app/penstock/table.h"
#include "app/penstock/verbs.h"

namespace penstock::app {

/// Asks about a file, or with "" about the configuration that counts now; `explain`: also which devices requests would get now. Returns the
/// exit status: 0, also where something would change; 1
/// where the configuration has problems or no agent answers.
int Plan(const Common& common, const std::string& file, bool explain);

/// For people.
std::string ShowPlan(const api::Plan& plan, const Style& style);

}  // namespace penstock::app
