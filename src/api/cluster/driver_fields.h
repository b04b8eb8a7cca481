// The fields of drivers in a Penstock object. Private to src/api.
#pragma once

#include "api/cluster/driver.h"
#include "api/cluster/field_forms.h"

namespace penstock::api {

template <typename Visit, base::Of<UpgradeWait> T>
void VisitFields(Visit& visit, T& wait) {
  visit("podSelector", wait.pod_selector, {.if_any = true});
  visit("timeout", wait.timeout);
}

template <typename Visit>
void VisitEviction(Visit& visit, auto& eviction) {
  visit("force", eviction.force);
  visit("deleteEmptyDir", eviction.delete_empty_dir);
  visit("timeout", eviction.timeout);
}

template <typename Visit, base::Of<UpgradeEviction> T>
void VisitFields(Visit& visit, T& eviction) {
  VisitEviction(visit, eviction);
}

template <typename Visit, base::Of<UpgradeDrain> T>
void VisitFields(Visit& visit, T& drain) {
  visit("enable", drain.enable);
  VisitEviction(visit, drain.eviction);
  visit("podSelector", drain.pod_selector, {.if_any = true});
}

template <typename Visit, base::Of<UpgradeCanaries> T>
void VisitFields(Visit& visit, T& canaries) {
  visit("nodeSelector", canaries.node_selector, {.if_any = true});
  VisitNumberOrPercent(visit, "count", canaries.count);
  visit("soak", canaries.soak);
}

template <typename Visit, base::Of<UpgradeRetries> T>
void VisitFields(Visit& visit, T& retries) {
  visit("count", retries.count, {.most = 100});
  visit("first", retries.first);
  visit("most", retries.most);
}

template <typename Visit, base::Of<UpgradePolicy> T>
void VisitFields(Visit& visit, T& policy) {
  visit("automatic", policy.automatic);
  visit("paused", policy.paused);
  visit("maxParallel", policy.max_parallel);
  VisitNumberOrPercent(visit, "maxUnavailable", policy.max_unavailable);
  visit.Struct("wait", policy.wait);
  visit.Struct("podDeletion", policy.pod_deletion);
  visit.Struct("drain", policy.drain);
  visit.Struct("canaries", policy.canaries);
  visit.Struct("retries", policy.retries);
  VisitNumberOrPercent(visit, "maxFailures", policy.max_failures);
  visit("rollBack", policy.roll_back);
  visit("loadTimeout", policy.load_timeout);
  visit("validationTimeout", policy.validation_timeout);
}

template <typename Visit, base::Of<ImageParts> T>
void VisitFields(Visit& visit, T& image) {
  visit("repository", image.repository, {.if_any = true});
  visit("image", image.image, {.if_any = true});
  visit("version", image.version, {.if_any = true});
  VisitWord(visit, "imagePullPolicy", image.pull_policy, {"Always", "IfNotPresent", "Never"});
  visit("imagePullSecrets", image.pull_secrets, {.if_any = true});
}

template <typename Visit, base::Of<DriverFiles> T>
void VisitFields(Visit& visit, T& files) {
  visit("repositories", files.repositories, {.if_any = true});
  visit("certificates", files.certificates, {.if_any = true});
  visit("moduleOptions", files.module_options, {.if_any = true});
  visit("licenseSecret", files.license_secret, {.if_any = true});
  visit("license", files.license_map, {.if_any = true});
  visit("licenseToken", files.license_token);
  visit("topology", files.topology, {.if_any = true});
  visit("variables", files.variables, {.if_any = true});
}

template <typename Visit>
void VisitDriverContainer(Visit& visit, auto& driver) {
  using enum base::Value::Kind;
  VisitKubeJson(visit, "startupProbe", driver.startup_probe, kMap);
  VisitKubeJson(visit, "livenessProbe", driver.liveness_probe, kMap);
  VisitKubeJson(visit, "readinessProbe", driver.readiness_probe, kMap);
  visit("args", driver.arguments, {.if_any = true});
  VisitEnvironment(visit, "env", driver.environment);
  VisitEnvironment(visit, "prepareEnv", driver.prepare_environment);
  visit.Struct("files", driver.files);
  visit("peerMemory", driver.peer_memory);
  visit("hostNetworkDriver", driver.host_network_driver);
  VisitKubeJson(visit, "resources", driver.resources, kMap);
}

template <typename Visit, base::Of<DriverSpec> T>
void VisitFields(Visit& visit, T& driver) {
  using enum base::Value::Kind;
  visit("name", driver.name, {.filled = true});
  visit("enabled", driver.enabled);
  visit("default", driver.fallback);
  VisitWord(visit, "type", driver.type, {"gpu", "vgpu", "vgpu-host-manager"});
  visit.Struct("image", driver.image);
  VisitWord(visit, "kernelModuleType", driver.module_type, {"auto", "open", "proprietary"});
  visit("precompiled", driver.precompiled);
  visit("nodeSelector", driver.node_selector, {.if_any = true});
  VisitKubeJson(visit, "nodeAffinity", driver.node_affinity, kMap);
  VisitDriverContainer(visit, driver);
  VisitKubeJson(visit, "tolerations", driver.tolerations, kList);
  VisitKubeJson(visit, "podSecurityContext", driver.pod_security_context, kMap);
  visit("priorityClassName", driver.priority_class, {.if_any = true});
  visit("labels", driver.labels, {.if_any = true});
  visit("annotations", driver.annotations, {.if_any = true});
  visit("hostNetwork", driver.host_network);
  visit.Struct("upgrade", driver.upgrade);
}

}  // namespace penstock::api
