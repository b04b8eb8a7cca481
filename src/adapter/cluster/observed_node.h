// Reads the labels, their owners and the resource amounts of a Node object. Does not keep the rest
// (images, conditions). Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "adapter/cluster/node_status.h"

namespace penstock::adapter::cluster {

/// Field manager of the labels that the agent applies to the Node.
inline constexpr std::string_view kLabelsManager = "penstock-labels";
/// Prefix of the keys of Penstock's own annotations.
inline constexpr std::string_view kOwnDomain = "penstock.io/";

struct ObservedNode {
  std::string name, uid, version;             ///< version is metadata.resourceVersion
  std::map<std::string, std::string> labels;  ///< all labels
  std::set<std::string> own;                  ///< keys that our field manager applied
  std::map<std::string, std::string> others;  ///< key → its manager, for keys that are not ours
  std::map<std::string, std::string> annotations;  ///< those of Penstock's domain
  std::set<std::string> nfd;                       ///< keys that NFD maintains, from its annotation
  NodeNumbers numbers;
  std::optional<ObservedCondition> ready;  ///< kReadyCondition; nothing: the Node has none
};

/// Reads a Node object of any shape.
ObservedNode ObserveNode(const nlohmann::json& node);

/// Whether `candidate` is at least as new as `known`. Versions are numbers with every API server
/// (guaranteed since 1.35); an object with any other version is accepted.
bool NotOlder(const ObservedNode& candidate, const ObservedNode& known);

}  // namespace penstock::adapter::cluster
