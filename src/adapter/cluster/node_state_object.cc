// An entry with a time is identified by its path in the object; its other keys are its value.
#include "adapter/cluster/node_state_object.h"

#include <functional>

#include <nlohmann/json.hpp>

#include "api/node_state.h"

namespace penstock::adapter::cluster {

namespace {

using Json = nlohmann::json;

std::string Text(const Json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

Json* Find(Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

/// Receives (path, value, object, key of the time) for each entry of a NodeState that has a time.
using Visit = std::function<void(const std::string&, const std::string&, Json&, const char*)>;

void VisitDated(Json& object, const Visit& visit) {
  Json* status = Find(object, "status");
  if (status == nullptr) return;
  if (Json* devices = Find(*status, "devices"); devices != nullptr && devices->is_array())
    for (Json& device : *devices)
      if (Json* health = Find(device, "health"))
        visit("device/" + Text(device, "id"),
              Text(*health, "state") + "|" + Text(*health, "reason"), *health, "since");
  if (Json* conditions = Find(*status, "conditions");
      conditions != nullptr && conditions->is_array())
    for (Json& condition : *conditions)
      visit("condition/" + Text(condition, "type"), Text(condition, "status"), condition,
            "lastTransitionTime");
  if (Json* steps = Find(*status, "validation"); steps != nullptr && steps->is_array())
    for (Json& step : *steps)
      visit("validation/" + Text(step, "name"), Text(step, "state"), step, "since");
  if (Json* configuration = Find(*status, "configuration"))
    visit("configuration", Text(*configuration, "origin"), *configuration, "since");
}

}  // namespace

void StartTimes::Remember(const Json& seen) {
  Json copy = seen;
  VisitDated(copy, [this](const std::string& path, const std::string& what, Json& object,
                          const char* key) {
    if (const std::string since = Text(object, key); !since.empty()) before_[path] = {what, since};
  });
}

void StartTimes::PutInto(Json& wanted, bool settling) {
  VisitDated(wanted, [this, settling](const std::string& path, const std::string& what,
                                      Json& object, const char* key) {
    const auto before = before_.find(path);
    if (before == before_.end() || before->second.what != what) return;
    const std::string own = Text(object, key);
    if (settling) own_[path] = own;
    if (const auto stands = own_.find(path); stands != own_.end() && stands->second == own)
      object[key] = before->second.since;
  });
}

void SetOwner(Json& object, const std::string& node, const std::string& node_uid) {
  if (!node_uid.empty())
    object["metadata"]["ownerReferences"] =
        Json::array({{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node}, {"uid", node_uid}}});
}

Json OwnedNodeState(const api::Report& report, const std::string& node_uid) {
  Json object = api::NodeStateOf(report);
  SetOwner(object, report.node, node_uid);
  return object;
}

const protocol::kube::Resource& NodeFeatures() {
  static const protocol::kube::Resource kind{"nfd.k8s-sigs.io", "v1alpha1", "nodefeatures"};
  return kind;
}

std::string NodeFeatureName(const std::string& node) { return "penstock-features-for-" + node; }

Json NodeFeatureOf(const std::string& node, const std::string& node_uid,
                   const std::map<std::string, std::string>& labels) {
  Json object = {
      {"apiVersion", "nfd.k8s-sigs.io/v1alpha1"},
      {"kind", "NodeFeature"},
      {"metadata",
       {{"name", NodeFeatureName(node)}, {"labels", {{"nfd.node.kubernetes.io/node-name", node}}}}},
      {"spec", {{"labels", labels}}}};
  SetOwner(object, node, node_uid);
  return object;
}

}  // namespace penstock::adapter::cluster
