#include "adapter/cluster/counters_watch.h"

#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/core/strings.h"
#include "protocol/kube/informer.h"

namespace penstock::adapter::cluster {

using protocol::kube::Informer;
using protocol::kube::Json;
using protocol::kube::ReconcileLoop;

api::RemoteConfig ChooseCounters(const std::string& name, const Json* config_map) {
  api::RemoteConfig remote{.origin = "ConfigMap " + name};
  const auto fail = [&remote](const std::string& why) {
    remote.problem = remote.origin + " " + why;
    return remote;
  };
  if (config_map == nullptr)
    return remote.problem = "there is no " + remote.origin +
                            ": create it, or remove its name from telemetry.countersConfigMap",
           remote;
  const Json data = config_map->value("data", Json::object());
  const bool usual = data.contains("metrics");
  if (!data.is_object() || (!usual && data.size() != 1))
    return fail("has no key \"metrics\"; put the counters file there");
  const auto key = usual ? data.find("metrics") : data.begin();
  remote.origin += ", key " + key.key();
  if (!key->is_string() || base::Trim(key->get<std::string>()).empty())
    return fail("is empty; add lines of the form FIELD, type, help");
  remote.text = key->get<std::string>();
  return remote;
}

struct CountersWatch::State {
  void Start() {
    if (where.size() != 2) return;
    Informer::Options options;
    options.resource = {"", "v1", "configmaps"};
    options.namespace_name = where[0];
    options.field_selector = "metadata.name=" + where[1];
    maps.emplace(api, options,
                 Informer::Handlers{.changed = [this](const Json&) { Refresh(); },
                                    .removed = [this](const auto&, const auto&) { Refresh(); },
                                    .synced = [this] { Refresh(); },
                                    .problem = [this](const base::Status& why) { OnError(why); }});
    maps->Start();
  }

  std::string Name() const { return where[0] + "/" + where[1]; }

  void Refresh() {
    if (maps->synced()) Notify(ChooseCounters(Name(), maps->Find(where[0], where[1]).get()));
  }

  void OnError(const base::Status& why) {
    const bool refused = !why.ok() && ReconcileLoop::IsRefusal(why.error().code());
    callbacks.problem(why.ok() ? ReconcileLoop::Problem{}
                               : ReconcileLoop::Problem{why.error().message(), refused});
    if (refused) Notify({.origin = "ConfigMap " + Name(), .problem = why.error().message()});
    if (why.ok()) Refresh();
  }

  void Notify(api::RemoteConfig remote) {
    if (reported == remote) return;
    reported = std::move(remote);
    callbacks.reported(*reported);
  }

  protocol::kube::Api& api;
  const std::vector<std::string> where;
  const Callbacks callbacks;
  std::optional<api::RemoteConfig> reported = {};
  std::optional<Informer> maps = {};
};

CountersWatch::CountersWatch(protocol::kube::Api& api, const std::string& where,
                             Callbacks callbacks)
    : state_(new State{api, base::Split(where, ':'), std::move(callbacks)}) {}

CountersWatch::~CountersWatch() = default;

void CountersWatch::Start() { state_->Start(); }

}  // namespace penstock::adapter::cluster
