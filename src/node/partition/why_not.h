// Explains why no arrangement exists. Private to node/partition.
#pragma once

#include "base/core/result.h"
#include "node/partition/solve.h"

namespace penstock::node::partition {

/// Why Solve() found nothing for this input.
Error WhyNoSolution(const SolveInput& input, bool proven);

/// Why parts that must stay are not among the desired ones; OK: they are.
Status CheckHeldParts(const SolveInput& input);

}  // namespace penstock::node::partition
