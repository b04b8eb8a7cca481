// Formats the nodes of a cluster as a table or JSON. Pure.
#pragma once

#include <string>
#include <vector>

#include "analysis/explain/nodes.h"
#include "app/penstock/common/table.h"

namespace penstock::app {

/// One line per node.
std::string ShowNodes(const std::vector<analysis::NodeView>& nodes, bool wide, const Style& style,
                      base::WallTime now);

/// The object {"nodes": [...]}.
std::string NodesToJson(const std::vector<analysis::NodeView>& nodes);

}  // namespace penstock::app
