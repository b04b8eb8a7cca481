#include "door/cluster_counters.h"

#include <optional>
#include <utility>

#include <nlohmann/json.hpp>

#include "base/core/strings.h"
#include "edge/kube/informer.h"

namespace penstock::door {

using edge::kube::Informer;
using edge::kube::Json;

WishedConfig ChooseCounters(const std::string& name, const Json* config_map) {
  WishedConfig wished{.origin = "ConfigMap " + name};
  const auto fail = [&wished](const std::string& why) {
    wished.problem = wished.origin + " " + why;
    return wished;
  };
  if (config_map == nullptr)
    return wished.problem = "there is no " + wished.origin + ": create it, or take its name out of telemetry.countersConfigMap", wished;
  const Json data = config_map->value("data", Json::object());
  const bool usual = data.contains("metrics");
  if (!data.is_object() || (!usual && data.size() != 1)) return fail("has no key \"metrics\"; put a file of counters there");
  const auto key = usual ? data.find("metrics") : data.begin();
  wished.origin += ", key " + key.key();
  if (!key->is_string() || base::Trim(key->get<std::string>()).empty()) return fail("is empty; write FIELD, type, help");
  wished.text = key->get<std::string>();
  return wished;
}

struct ClusterCounters::State {
  void Start() {
    if (where.size() != 2) return;
    Informer::Options options;
    options.resource = {"", "v1", "configmaps"};
    options.namespace_name = where[0];
    options.field_selector = "metadata.name=" + where[1];
    maps.emplace(api, options,
                 Informer::Handlers{.changed = [this](const Json&) { Look(); },
                                    .removed = [this](const auto&, const auto&) { Look(); },
                                    .synced = [this] { Look(); },
                                    .trouble = [this](const base::Status& why) { Trouble(why); }});
    maps->Start();
  }

  std::string Name() const { return where[0] + "/" + where[1]; }

  void Look() {
    if (maps->synced()) Tell(ChooseCounters(Name(), maps->Find(where[0], where[1])));
  }

  void Trouble(const base::Status& why) {
    const bool refused = !why.ok() && ClusterWork::IsRefusal(why.error().code());
    callbacks.problem(why.ok() ? ClusterWork::Problem{} : ClusterWork::Problem{why.error().message(), refused});
    if (refused) Tell({.origin = "ConfigMap " + Name(), .problem = why.error().message()});
    if (why.ok()) Look();
  }

  void Tell(WishedConfig wish) {
    if (told == wish) return;
    told = std::move(wish);
    callbacks.told(*told);
  }

  edge::kube::Api& api;
  const std::vector<std::string> where;
  const Callbacks callbacks;
  std::optional<WishedConfig> told = {};
  std::optional<Informer> maps = {};
};

ClusterCounters::ClusterCounters(edge::kube::Api& api, const std::string& where, Callbacks callbacks)
    : state_(new State{api, base::Split(where, ':'), std::move(callbacks)}) {}

ClusterCounters::~ClusterCounters() = default;

void ClusterCounters::Start() { state_->Start(); }

}  // namespace penstock::door
