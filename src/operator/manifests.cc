#include "operator/manifests.h"

#include <set>

#include "base/core/hash.h"
#include "base/core/json_text.h"
#include "operator/agent_config.h"
#include "operator/driver/driver_daemon_set.h"
#include "operator/json_values.h"
#include "operator/names.h"

namespace penstock::cluster {
namespace {

using Texts = std::map<std::string, std::string>;

constexpr std::string_view kSecurityLevels[] = {"enforce", "audit", "warn"};

std::string HexOf(std::uint64_t number) {
  std::string text;
  for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[(number >> shift) & 0xF];
  return text;
}

const OwnedKind& KindNamed(std::string_view kind) {
  for (const OwnedKind& one : OwnedKinds())
    if (one.kind == kind) return one;
  return OwnedKinds().front();
}

/// Completes an object with what all of ours have. Without an owner's uid, nothing owns it.
WantedObject Owned(std::string_view kind_name, Json object, const Texts& labels,
                   const Installation& installation, const PolicyName& owner) {
  const OwnedKind& kind = KindNamed(kind_name);
  const auto& resource = kind.resource;
  object["apiVersion"] =
      resource.group.empty() ? resource.version : resource.group + "/" + resource.version;
  object["kind"] = kind.kind;
  Json& metadata = object["metadata"];
  if (kind.namespaced) metadata["namespace"] = installation.namespace_name;
  for (const auto& [key, value] : labels) metadata["labels"][key] = value;
  // An owner in a namespace cannot own an object of the cluster: only the operator deletes it then.
  const bool may_own = kind.namespaced || owner.namespace_name.empty();
  if (may_own && !owner.uid.empty()) SetOwner(object, owner);
  metadata["annotations"][std::string(kAppliedHash)] = HexOf(base::Hash(base::JsonText(object)));
  return {&kind, std::move(object)};
}

Json ConfigMapOf(std::string_view name, const std::string& configuration) {
  return {{"metadata", {{"name", name}}}, {"data", {{"node.yaml", configuration}}}};
}

std::string PortNameOf(const api::MetricsService& service) {
  return service.port_name.empty() ? api::compat::PortName(service.name) : service.port_name;
}

}  // namespace

const std::vector<OwnedKind>& OwnedKinds() {
  static const std::vector<OwnedKind> kinds = {
      {{"node.k8s.io", "v1", "runtimeclasses"}, "RuntimeClass", false},
      {{"", "v1", "configmaps"}, "ConfigMap"},
      {{"apps", "v1", "daemonsets"}, "DaemonSet"},
      {{"", "v1", "services"}, "Service", true, false, true},
      {{"monitoring.coreos.com", "v1", "servicemonitors"}, "ServiceMonitor", true, true, true}};
  return kinds;
}

const std::map<std::string, std::string>& AgentLabels() {
  static const std::map<std::string, std::string> labels = {
      {"app.kubernetes.io/name", "penstock"},
      {"app.kubernetes.io/instance", std::string(kAgentName)},
      {std::string(kManagedBy), std::string(kManager)}};
  return labels;
}

Json ServiceOf(const api::MetricsService& service) {
  Json port = {{"name", PortNameOf(service)},
               {"port", service.port},
               {"targetPort", "metrics"},
               {"protocol", "TCP"}};
  if (service.node_port != 0) port["nodePort"] = service.node_port;
  Json spec = {{"type", service.type}, {"ports", {port}}};
  for (const auto& [key, value] : AgentLabels()) spec["selector"][key] = value;
  if (!service.internal_traffic_policy.empty())
    spec["internalTrafficPolicy"] = service.internal_traffic_policy;
  if (!service.external_traffic_policy.empty())
    spec["externalTrafficPolicy"] = service.external_traffic_policy;
  Json metadata = {{"name", service.name}};
  if (!service.labels.empty()) metadata["labels"] = service.labels;
  if (!service.annotations.empty()) metadata["annotations"] = service.annotations;
  return {{"metadata", metadata}, {"spec", spec}};
}

Json MonitorOf(const api::MetricsService& service, const std::string& namespace_name) {
  Json endpoint = {{"port", PortNameOf(service)}, {"path", "/metrics"}};
  if (!service.interval.empty()) endpoint["interval"] = service.interval;
  if (!service.scrape_timeout.empty()) endpoint["scrapeTimeout"] = service.scrape_timeout;
  if (service.honor_labels) endpoint["honorLabels"] = true;
  for (const auto& [key, rules] : {std::pair("relabelings", &service.relabelings),
                                   std::pair("metricRelabelings", &service.metric_relabelings)})
    if (Json list = base::ParseJson<Json>(rules->text); list.is_array())
      endpoint[key] = std::move(list);
  Json metadata = {{"name", service.name}};
  if (!service.monitor_labels.empty()) metadata["labels"] = service.monitor_labels;
  Json match = service.labels;
  if (service.labels.empty())
    for (const auto& [key, value] : AgentLabels()) match[key] = value;
  return {{"metadata", metadata},
          {"spec",
           {{"namespaceSelector", {{"matchNames", {namespace_name}}}},
            {"selector", {{"matchLabels", match}}},
            {"jobLabel", "app"},
            {"endpoints", {endpoint}}}}};
}

std::map<std::string, std::string> PrivilegedLabels(const api::PenstockSpec& spec) {
  std::map<std::string, std::string> labels;
  if (!spec.privileged_namespace) return labels;
  for (const std::string_view level : kSecurityLevels)
    labels["pod-security.kubernetes.io/" + std::string(level)] = "privileged";
  return labels;
}

void SetOwner(Json& object, const PolicyName& owner) {
  object["metadata"]["ownerReferences"] = {{{"apiVersion", owner.api_version},
                                            {"kind", owner.kind},
                                            {"name", owner.name},
                                            {"uid", owner.uid},
                                            {"controller", true}}};
}

WantedObject OwnedDriverSet(Json daemon_set, const Installation& installation,
                            const PolicyName& owner) {
  return Owned("DaemonSet", std::move(daemon_set),
               {{std::string(kManagedBy), std::string(kManager)}}, installation, owner);
}

bool IsDriverSet(const Json& daemon_set) {
  return TextsAt(daemon_set, "/metadata/labels").contains(std::string(kPoolLabel));
}

base::Result<std::vector<WantedObject>> ObjectsOf(const api::PenstockSpec& spec,
                                                  const Installation& installation,
                                                  const PolicyName& owner) {
  const std::string configuration =
      api::ToShortYaml(ConfigOfPod(spec, installation.namespace_name));
  ASSIGN(Json pods, AgentDaemonSet(spec, installation, configuration));
  std::vector<WantedObject> objects;
  const auto add = [&](std::string_view kind, Json object) {
    objects.push_back(Owned(kind, std::move(object), AgentLabels(), installation, owner));
  };
  for (const api::RuntimeClassSpec& one : spec.runtime_classes)
    add("RuntimeClass", {{"metadata", {{"name", one.name}}}, {"handler", one.handler}});
  add("ConfigMap", ConfigMapOf(kAgentName, configuration));
  add("DaemonSet", std::move(pods));
  for (const api::MetricsService& service : spec.services) {
    add("Service", ServiceOf(service));
    if (service.monitor) add("ServiceMonitor", MonitorOf(service, installation.namespace_name));
  }
  return objects;
}

base::Result<std::vector<WantedObject>> HostReleaseOf(const api::PenstockSpec& spec,
                                                      const Installation& installation,
                                                      const std::set<std::string>& had_agents) {
  const std::string configuration =
      api::ToShortYaml(ConfigOfPod(spec, installation.namespace_name));
  Texts labels = AgentLabels();
  labels["app.kubernetes.io/instance"] = kHostReleaseName;
  ASSIGN(Json pods, HostReleaseSet(spec, installation, configuration, labels, had_agents));
  std::vector<WantedObject> objects;
  objects.push_back(
      Owned("ConfigMap", ConfigMapOf(kHostReleaseName, configuration), labels, installation, {}));
  objects.push_back(Owned("DaemonSet", std::move(pods), labels, installation, {}));
  return objects;
}

}  // namespace penstock::cluster
