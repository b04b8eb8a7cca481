// Builds the NodeState object as it is written: the report, its owner, and times that survive
// restarts of the agent. Writes nothing.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "adapter/cluster/observed_node.h"
#include "api/report.h"
#include "protocol/kube/api.h"

namespace penstock::adapter::cluster {

/// Field manager of the objects that the agent applies: NodeState and NodeFeature.
inline constexpr std::string_view kObjectsManager = "penstock";

/// Value and time of one entry of the object.
struct DatedConditions {
  std::string what, since;
};

/// An agent that just started knows only since when it has seen an entry itself. Where the object
/// already had the same value, the object's time is kept until the value changes.
class StartTimes {
 public:
  /// Takes the object as an earlier agent left it; null: there is none.
  void Remember(const nlohmann::json& seen);

  /// Puts in the older times that still hold. While `settling`, the agent's own times count as its
  /// start times.
  void PutInto(nlohmann::json& wanted, bool settling);

 private:
  std::map<std::string, DatedConditions> before_;
  std::map<std::string, std::string> own_;  // path → our own time, replaced by the older one
};

/// NodeStateOf with the Node as owner; without an owner if the Node's uid is unknown (empty).
nlohmann::json OwnedNodeState(const api::Report& report, const std::string& node_uid);

/// The kind of NodeFeature objects, and the name of a node's.
const protocol::kube::Resource& NodeFeatures();
std::string NodeFeatureName(const std::string& node);

/// The object that passes the labels to NFD: NodeFeature of nfd.k8s-sigs.io/v1alpha1.
nlohmann::json NodeFeatureOf(const std::string& node, const std::string& node_uid,
                             const std::map<std::string, std::string>& labels);

/// Sets the Node as the owner in metadata; does nothing if `node_uid` is empty.
void SetOwner(nlohmann::json& object, const std::string& node, const std::string& node_uid);

}  // namespace penstock::adapter::cluster
