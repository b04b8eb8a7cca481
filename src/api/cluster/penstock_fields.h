// The fields of a Penstock object, each described once: reading, writing and the schema of the
// CustomResourceDefinition follow from that. Besides what base/core/fields.h describes, visitors
// have Struct and Configuration; those that read have Below, and the others Items, Part, Word and
// NumberOrPercent. Private to src/api.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/cluster/kube_json.h"
#include "api/cluster/penstock.h"
#include "base/core/fields.h"
#include "base/core/strings.h"

namespace penstock::api {

inline constexpr base::Names<bool, 2> kAgentUpdates = {
    {{false, "RollingUpdate"}, {true, "OnDelete"}}};

/// A list or a map that is passed on as it is.
template <typename Visit>
void VisitKubeJson(Visit& visit, std::string_view key, auto& value, base::Value::Kind kind) {
  if constexpr (Visit::kReads) {
    const base::Value* found =
        kind == base::Value::Kind::kList ? visit.map().List(key) : visit.map().Map(key);
    if (found != nullptr) value = internal::KubeJsonOf(*found);
  } else {
    visit.Part(key, value, kind);
  }
}

/// One of several words, or nothing.
template <typename Visit>
void VisitWord(Visit& visit, std::string_view key, auto& value,
               const std::vector<std::string>& words) {
  if constexpr (Visit::kReads) {
    if (auto word = visit.map().OneOf(key, words)) value = *std::move(word);
  } else {
    visit.Word(key, value, words);
  }
}

/// A number, or a text with a percent sign.
template <typename Visit>
void VisitNumberOrPercent(Visit& visit, std::string_view key, auto& value) {
  if constexpr (Visit::kReads) {
    const base::Value* found = visit.map().Any(key);
    if (found == nullptr || found->kind == base::Value::Kind::kNull) return;
    const bool scalar =
        found->kind == base::Value::Kind::kInt || found->kind == base::Value::Kind::kString;
    if (scalar && (found->text.empty() || internal::IsNumberOrPercent(found->text))) {
      value = found->text;
    } else {
      visit.map().Problem(key, "is neither a number of nodes nor a percentage such as \"25%\"");
    }
  } else {
    visit.NumberOrPercent(key, value);
  }
}

/// A list of maps with names: an item changes the one with its name, or is added.
template <typename Visit, typename Name>
void VisitNamed(Visit& visit, std::string_view key, auto& items, Name name) {
  using Item = typename std::remove_cvref_t<decltype(items)>::value_type;
  if constexpr (Visit::kReads) {
    const base::Value* list = visit.map().List(key);
    for (std::size_t i = 0; list != nullptr && i < list->list->size(); ++i) {
      const base::Value& one = (*list->list)[i];
      const base::Value* named = one.Find("name");
      auto found = items.end();
      if (named != nullptr && named->kind == base::Value::Kind::kString)
        found = std::find_if(items.begin(), items.end(),
                             [&](const Item& item) { return item.*name == named->text; });
      if (found == items.end()) found = items.insert(items.end(), Item{});
      visit.Below(one, base::Item(visit.map().Path(key), i), *found);
    }
  } else {
    visit.Items(key, items);
  }
}

/// A variable of the agents' container.
struct AgentVariable {
  std::string name, value;
};

template <typename Visit, base::Of<AgentVariable> T>
void VisitFields(Visit& visit, T& variable) {
  visit("name", variable.name, {.filled = true});
  visit("value", variable.value);
}

template <typename Visit, base::Of<AgentUpdate> T>
void VisitFields(Visit& visit, T& update) {
  visit.Named("type", update.on_delete, kAgentUpdates);
  VisitNumberOrPercent(visit, "maxUnavailable", update.max_unavailable);
}

template <typename Visit>
void VisitEnvironment(Visit& visit, auto& environment) {
  std::vector<AgentVariable> variables;
  for (const auto& [name, value] : environment) variables.push_back({name, value});
  VisitNamed(visit, "env", variables, &AgentVariable::name);
  if constexpr (Visit::kReads) {
    environment.clear();
    for (AgentVariable& variable : variables)
      environment.emplace_back(std::move(variable.name), std::move(variable.value));
  }
}

template <typename Visit, base::Of<AgentPods> T>
void VisitFields(Visit& visit, T& agent) {
  using enum base::Value::Kind;
  visit("image", agent.image, {.if_any = true});
  VisitWord(visit, "imagePullPolicy", agent.pull_policy, {"Always", "IfNotPresent", "Never"});
  visit("imagePullSecrets", agent.pull_secrets, {.if_any = true});
  visit("labels", agent.labels, {.if_any = true});
  visit("annotations", agent.annotations, {.if_any = true});
  visit("nodeSelector", agent.node_selector, {.if_any = true});
  VisitKubeJson(visit, "tolerations", agent.tolerations, kList);
  VisitKubeJson(visit, "affinity", agent.affinity, kMap);
  VisitKubeJson(visit, "resources", agent.resources, kMap);
  VisitKubeJson(visit, "podSecurityContext", agent.pod_security_context, kMap);
  VisitKubeJson(visit, "volumes", agent.volumes, kList);
  VisitKubeJson(visit, "volumeMounts", agent.volume_mounts, kList);
  VisitEnvironment(visit, agent.environment);
  visit("priorityClassName", agent.priority_class, {.if_any = true});
  visit("hostNetwork", agent.host_network);
  visit.Struct("updateStrategy", agent.update);
}

template <typename Visit, base::Of<HostPaths> T>
void VisitFields(Visit& visit, T& host) {
  visit("driverRoot", host.driver_root);
  visit("kubeletDir", host.kubelet_dir);
  visit("installDir", host.install_dir, {.if_any = true});
}

template <typename Visit, base::Of<NamedConfigMaps> T>
void VisitFields(Visit& visit, T& maps) {
  visit("configurations", maps.configurations, {.if_any = true});
  visit("defaultConfiguration", maps.default_configuration, {.if_any = true});
  visit("layouts", maps.layouts, {.if_any = true});
  visit("counters", maps.counters, {.if_any = true});
}

template <typename Visit, base::Of<RuntimeClassSpec> T>
void VisitFields(Visit& visit, T& runtime_class) {
  visit("name", runtime_class.name, {.filled = true});
  visit("handler", runtime_class.handler, {.filled = true});
}

template <typename Visit, base::Of<MetricsService> T>
void VisitFields(Visit& visit, T& service) {
  visit("name", service.name, {.filled = true});
  visit("port", service.port, {.least = 1, .most = 65535});
  VisitWord(visit, "type", service.type, {"ClusterIP", "NodePort", "LoadBalancer"});
  VisitWord(visit, "internalTrafficPolicy", service.internal_traffic_policy, {"Cluster", "Local"});
  visit("labels", service.labels, {.if_any = true});
  visit("annotations", service.annotations, {.if_any = true});
  visit("serviceMonitor", service.monitor);
  visit("interval", service.interval, {.if_any = true});
  visit("scrapeTimeout", service.scrape_timeout, {.if_any = true});
  visit("honorLabels", service.honor_labels, {.if_any = true});
  visit("monitorLabels", service.monitor_labels, {.if_any = true});
  VisitKubeJson(visit, "relabelings", service.relabelings, base::Value::Kind::kList);
}

template <typename Visit, base::Of<NodeMarks> T>
void VisitFields(Visit& visit, T& marks) {
  visit("labels", marks.labels, {.if_any = true});
  visit("annotations", marks.annotations, {.if_any = true});
  visit("present", marks.present_label, {.if_any = true});
  visit("optOut", marks.opt_out_label, {.if_any = true});
}

template <typename Visit, base::Of<PenstockSpec> T>
void VisitFields(Visit& visit, T& spec) {
  visit.Struct("agent", spec.agent);
  visit.Struct("hostPaths", spec.host);
  visit.Configuration("node", spec.node);
  visit.Struct("configMaps", spec.config_maps);
  VisitNamed(visit, "runtimeClasses", spec.runtime_classes, &RuntimeClassSpec::name);
  VisitNamed(visit, "services", spec.services, &MetricsService::name);
  visit.Struct("nodeLabels", spec.marks);
  visit("privilegedNamespace", spec.privileged_namespace);
}

}  // namespace penstock::api
