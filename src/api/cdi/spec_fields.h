// The fields of a specification, in the order of the format: for its reader and for its writers.
#pragma once

#include "api/cdi/spec.h"
#include "base/core/fields.h"

namespace penstock::api::cdi {

template <typename Visit, base::Of<DeviceNode> T>
void VisitFields(Visit& visit, T& node) {
  visit("path", node.path);
  visit("hostPath", node.host_path, {.if_any = true});
  visit("type", node.type, {.if_any = true});
  visit("major", node.major);
  visit("minor", node.minor);
  visit("fileMode", node.file_mode);
  visit("permissions", node.permissions, {.if_any = true});
  visit("uid", node.uid);
  visit("gid", node.gid);
}

template <typename Visit, base::Of<NetDevice> T>
void VisitFields(Visit& visit, T& device) {
  visit("hostInterfaceName", device.host_interface);
  visit("name", device.name);
}

template <typename Visit, base::Of<Hook> T>
void VisitFields(Visit& visit, T& hook) {
  visit("hookName", hook.name);
  visit("path", hook.path);
  visit("args", hook.args, {.if_any = true});
  visit("env", hook.env, {.if_any = true});
  visit("timeout", hook.timeout);
}

template <typename Visit, base::Of<Mount> T>
void VisitFields(Visit& visit, T& mount) {
  visit("hostPath", mount.host_path);
  visit("containerPath", mount.container_path);
  visit("options", mount.options, {.if_any = true});
  visit("type", mount.type, {.if_any = true});
}

template <typename Visit, base::Of<IntelRdt> T>
void VisitFields(Visit& visit, T& rdt) {
  visit("closID", rdt.clos_id, {.if_any = true});
  visit("l3CacheSchema", rdt.l3_cache_schema, {.if_any = true});
  visit("memBwSchema", rdt.memory_bandwidth_schema, {.if_any = true});
  visit("schemata", rdt.schemata, {.if_any = true});
  visit("enableMonitoring", rdt.enable_monitoring, {.if_any = true});
  visit("enableCMT", rdt.enable_cmt, {.if_any = true});
  visit("enableMBM", rdt.enable_mbm, {.if_any = true});
}

template <typename Visit, base::Of<CdiEdits> T>
void VisitFields(Visit& visit, T& edits) {
  visit("env", edits.env, {.if_any = true});
  visit("deviceNodes", edits.nodes, {.if_any = true});
  visit("netDevices", edits.net_devices, {.if_any = true});
  visit("hooks", edits.hooks, {.if_any = true});
  visit("mounts", edits.mounts, {.if_any = true});
  visit("intelRdt", edits.intel_rdt);
  visit("additionalGids", edits.additional_gids, {.if_any = true});
}

template <typename Visit, base::Of<Device> T>
void VisitFields(Visit& visit, T& device) {
  visit("name", device.name);
  visit("annotations", device.annotations, {.if_any = true});
  visit("containerEdits", device.edits);
}

template <typename Visit, base::Of<Spec> T>
void VisitFields(Visit& visit, T& spec) {
  std::string version =
      Visit::kReads || !spec.version.empty() ? spec.version : MinimumVersion(spec);
  visit("cdiVersion", version);
  if constexpr (Visit::kReads) spec.version = version;
  visit("kind", spec.kind);
  visit("annotations", spec.annotations, {.if_any = true});
  visit("devices", spec.devices);
  if (Visit::kReads || spec.edits != CdiEdits()) visit("containerEdits", spec.edits);
}

}  // namespace penstock::api::cdi
