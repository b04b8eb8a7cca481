// The node's own object as it is written: the report, whose it is, and since when things are so over restarts of the agent. Writes nothing.
#pragma once

#include <map>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "api/report.h"
#include "door/cluster_node.h"

namespace penstock::door {

/// Each thing in the object that has a time: what it says besides, and when.
struct Dated {
  std::string what, since;
};

/// An agent that has just begun knows only since when itself has seen a thing; where the object says that it was so before, that time
/// counts, until the thing changes.
class StartTimes {
 public:
  /// The object as an agent before us left it; null where there is none.
  void Remember(const nlohmann::json& seen);

  /// Puts the times in that are older and still true. As long as `settling`, the agent's own times are taken as those of its start.
  void PutInto(nlohmann::json& wanted, bool settling);

 private:
  std::map<std::string, Dated> before_;
  std::map<std::string, std::string> own_;  // path → our own time that stands for the older one
};

/// NodeStateOf with the Node as its owner (without one where its uid is not known).
nlohmann::json OwnedNodeState(const api::Report& report, const std::string& node_uid);

/// The object that brings the labels to NFD: NodeFeature of nfd.k8s-sigs.io/v1alpha1.
nlohmann::json NodeFeatureOf(const std::string& node, const std::string& node_uid, const std::map<std::string, std::string>& labels);

/// Owner reference to a Node; goes into metadata.
void SetOwner(nlohmann::json& object, const std::string& node, const std::string& node_uid);

}  // namespace penstock::door
