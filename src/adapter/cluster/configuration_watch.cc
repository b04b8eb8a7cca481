// Runs two informers of one object each. Reports a configuration only once both the label and the
// ConfigMap are known, since one of them alone would select a different configuration.
#include "adapter/cluster/configuration_watch.h"

#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/log.h"
#include "protocol/kube/informer.h"

namespace penstock::adapter::cluster {

using protocol::kube::Informer;
using protocol::kube::Json;
using protocol::kube::ReconcileLoop;

namespace {

ReconcileLoop::Problem ProblemOf(const Status& why) {
  if (why.ok()) return {};
  return {why.error().message(), ReconcileLoop::IsRefusal(why.error().code())};
}

}  // namespace

struct ConfigurationWatch::State {
  State(protocol::kube::Api& a, std::string n, api::ConfigMapConfig w, Callbacks c)
      : api(a), name(std::move(n)), where(std::move(w)), callbacks(std::move(c)) {}

  void Start() {
    Informer::Options node_options;
    node_options.resource = {"", "v1", "nodes"};
    node_options.field_selector = "metadata.name=" + name;
    node_options.without = {"/spec", "/status/images", "/status/addresses", "/status/nodeInfo"};
    nodes.emplace(api, node_options,
                  Informer::Handlers{.changed = [this](const Json& object) { Seen(object); },
                                     .removed = [this](const auto&, const auto&) { Removed(); },
                                     .synced = [this] { NodesSynced(); },
                                     .problem = [this](const Status& why) { OnNodeProblem(why); }});
    nodes->Start();
    if (where.name.empty()) return Notify({});
    Informer::Options map_options;
    map_options.resource = {"", "v1", "configmaps"};
    map_options.namespace_name = where.namespace_name;
    map_options.field_selector = "metadata.name=" + where.name;
    maps.emplace(api, map_options,
                 Informer::Handlers{.changed = [this](const Json&) { Choose(); },
                                    .removed = [this](const auto&, const auto&) { Choose(); },
                                    .synced = [this] { Choose(); },
                                    .problem = [this](const Status& why) { OnMapProblem(why); }});
    maps->Start();
  }

  void Seen(const Json& object) {
    ObservedNode view = ObserveNode(object);
    if (view.name != name || (node && !NotOlder(view, *node))) return;
    const bool first = !node;
    node = std::move(view);
    AttributeLabels();
    forbidden.clear();
    if (first) callbacks.problem("node", {});
    callbacks.node();
    Choose();
  }

  void Adopt(const Json& object) {
    const ObservedNode view = ObserveNode(object);
    if (view.name != name) return;
    owners = Owners{view.uid, {}, view.others};
    for (const std::string& key : view.own)
      if (const auto label = view.labels.find(key); label != view.labels.end())
        owners->own.insert(*label);
    if (!node || NotOlder(view, *node)) return Seen(object);
    AttributeLabels();
  }

  /// A label that we applied and that has another value now was changed by another client.
  void AttributeLabels() {
    if (!node || !owners) return;
    bool taken = owners->uid != node->uid;
    node->own.clear();
    node->others = owners->others;
    for (const auto& [key, value] : owners->own) {
      const auto label = node->labels.find(key);
      const bool still = label != node->labels.end() && label->second == value;
      if (still) node->own.insert(key);
      taken |= !still;
    }
    if (taken) owners.reset();
  }

  void Removed() {
    node.reset();
    owners.reset();
    NodesSynced();
    callbacks.node();
  }

  void NodesSynced() {
    if (node) return;
    callbacks.problem("node", {"Node " + name +
                               " does not exist: set node.name (in a pod NODE_NAME), or wait until "
                               "the kubelet registers it"});
  }

  void OnNodeProblem(const Status& why) {
    const bool no_right = !why.ok() && why.error().code() == Code::kPermissionDenied;
    forbidden = no_right ? why.error().message() : "";
    callbacks.problem("node", ProblemOf(why));
    if (why.ok() && nodes->synced()) NodesSynced();
    if (no_right) callbacks.node();
    Choose();
  }

  void OnMapProblem(const Status& why) {
    map_forbidden =
        !why.ok() && why.error().code() == Code::kPermissionDenied ? why.error().message() : "";
    callbacks.problem("configuration", ProblemOf(why));
    Choose();
  }

  void Choose() {
    if (!maps) return;
    if (!map_forbidden.empty())
      return Notify({.origin = api::NameOf(where), .problem = map_forbidden});
    if (!node && !forbidden.empty())
      return Notify(
          {.origin = api::NameOf(where),
           .problem = "cannot select the ConfigMap's key by the Node's label: " + forbidden});
    if (!node || !maps->synced()) return;
    const auto label = node->labels.find(where.node_label);
    Notify(api::ChooseConfig(where, label == node->labels.end() ? "" : label->second,
                             maps->Find(where.namespace_name, where.name).get()));
  }

  void Notify(api::RemoteConfig remote) {
    if (reported == remote) return;
    if (!remote.problem.empty())
      base::Log(base::kWarn, "configuration unavailable",
                {{"from", remote.origin}, {"why", remote.problem}});
    reported = std::move(remote);
    callbacks.remote(*reported);
  }

  protocol::kube::Api& api;
  const std::string name;
  const api::ConfigMapConfig where;
  const Callbacks callbacks;
  /// Label owners in the last whole object.
  struct Owners {
    std::string uid;
    std::map<std::string, std::string> own;     // key → value
    std::map<std::string, std::string> others;  // key → manager
  };
  std::optional<ObservedNode> node;
  std::optional<Owners> owners;
  std::string forbidden, map_forbidden;  // error text of the missing permission
  std::optional<api::RemoteConfig> reported;
  std::optional<Informer> nodes, maps;
};

ConfigurationWatch::ConfigurationWatch(protocol::kube::Api& api, std::string node,
                                       api::ConfigMapConfig where, Callbacks callbacks)
    : state_(
          std::make_unique<State>(api, std::move(node), std::move(where), std::move(callbacks))) {}

ConfigurationWatch::~ConfigurationWatch() = default;

void ConfigurationWatch::Start() { state_->Start(); }
const ObservedNode* ConfigurationWatch::node() const {
  return state_->node ? &*state_->node : nullptr;
}
bool ConfigurationWatch::node_forbidden() const { return !state_->forbidden.empty(); }
bool ConfigurationWatch::owners_known() const { return state_->owners.has_value(); }
void ConfigurationWatch::Adopt(const Json& node) { state_->Adopt(node); }

}  // namespace penstock::adapter::cluster
