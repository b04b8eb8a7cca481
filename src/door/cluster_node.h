// What is looked at of a Node object: labels and whose they are, and its numbers. The rest of it (images, conditions) is not kept. Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "door/node_status.h"

namespace penstock::door {

/// Field manager of the labels that we write on the Node.
inline constexpr std::string_view kLabelsManager = "penstock-labels";

struct NodeView {
  std::string name, uid, version;             ///< metadata.resourceVersion
  std::map<std::string, std::string> labels;  ///< all of them
  std::set<std::string> ours;                 ///< keys that our field manager has applied
  std::map<std::string, std::string> others;  ///< key → the manager that has it, where we have not
  std::set<std::string> nfd;                  ///< keys that NFD keeps, as its annotation lists them
  NodeNumbers numbers;
};

/// Of what a Node object says, in whatever shape it is.
NodeView ViewOf(const nlohmann::json& node);

/// Whether `candidate` is not older than `known`. Versions are numbers with every API server there is (and by promise since 1.35); others
/// are taken as they come.
bool NotOlder(const NodeView& candidate, const NodeView& known);

}  // namespace penstock::door
