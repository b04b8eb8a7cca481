// The fields of a Penstock object, each described once: reading, writing and the schema of the
// CustomResourceDefinition follow from that. Besides what base/core/fields.h describes, visitors
// have Struct and Configuration. Private to src/api.
#pragma once

#include "api/cluster/driver_fields.h"
#include "api/cluster/field_forms.h"
#include "api/cluster/penstock.h"
#include "base/core/fields.h"

namespace penstock::api {

inline constexpr base::Names<bool, 2> kAgentUpdates = {
    {{false, "RollingUpdate"}, {true, "OnDelete"}}};

template <typename Visit, base::Of<AgentUpdate> T>
void VisitFields(Visit& visit, T& update) {
  visit.Named("type", update.on_delete, kAgentUpdates);
  VisitNumberOrPercent(visit, "maxUnavailable", update.max_unavailable);
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
  VisitEnvironment(visit, "env", agent.environment);
  visit("priorityClassName", agent.priority_class, {.if_any = true});
  visit("hostNetwork", agent.host_network);
  visit.Struct("updateStrategy", agent.update);
}

template <typename Visit, base::Of<HostPaths> T>
void VisitFields(Visit& visit, T& host) {
  visit("driverRoot", host.driver_root);
  visit("kubeletDir", host.kubelet_dir);
  visit("devicePluginsDir", host.device_plugins_dir);
  visit("installDir", host.install_dir, {.if_any = true});
  visit("healthSockets", host.health_sockets, {.if_any = true});
}

template <typename Visit, base::Of<NamedConfigMaps> T>
void VisitFields(Visit& visit, T& maps) {
  visit("configurations", maps.configurations, {.if_any = true});
  visit("defaultConfiguration", maps.default_configuration, {.if_any = true});
  visit("layouts", maps.layouts, {.if_any = true});
  visit("counters", maps.counters, {.if_any = true});
  visit("exporter", maps.exporter, {.if_any = true});
  visit("modeProfiles", maps.mode_profiles, {.if_any = true});
  visit("clientServices", maps.client_services, {.if_any = true});
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
  visit("nodePort", service.node_port, {.if_any = true, .most = 65535});
  VisitWord(visit, "internalTrafficPolicy", service.internal_traffic_policy, {"Cluster", "Local"});
  VisitWord(visit, "externalTrafficPolicy", service.external_traffic_policy, {"Cluster", "Local"});
  visit("labels", service.labels, {.if_any = true});
  visit("annotations", service.annotations, {.if_any = true});
  visit("serviceMonitor", service.monitor);
  visit("interval", service.interval, {.if_any = true});
  visit("scrapeTimeout", service.scrape_timeout, {.if_any = true});
  visit("honorLabels", service.honor_labels, {.if_any = true});
  visit("monitorLabels", service.monitor_labels, {.if_any = true});
  VisitKubeJson(visit, "relabelings", service.relabelings, base::Value::Kind::kList);
  VisitKubeJson(visit, "metricRelabelings", service.metric_relabelings, base::Value::Kind::kList);
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
  visit("startupTaints", spec.startup_taints, {.if_any = true});
  VisitNamed(visit, "drivers", spec.drivers, &DriverSpec::name);
  visit("privilegedNamespace", spec.privileged_namespace);
}

}  // namespace penstock::api
