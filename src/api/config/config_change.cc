// Compares printed documents, so that no key can be missed.
#include "api/config/config_change.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/core/document.h"
#include "base/core/strings.h"
#include "base/yaml.h"

namespace penstock::api {

namespace {

using base::Value;
using Flat = std::vector<std::pair<std::string, std::string>>;

std::string Text(const Value& value) {
  std::vector<std::string> parts;
  if (value.kind == Value::Kind::kList) {
    for (const Value& item : *value.list) parts.push_back(Text(item));
    return "[" + base::Join(parts, ", ") + "]";
  }
  if (value.kind == Value::Kind::kMap) {
    for (const auto& entry : *value.map) parts.push_back(entry.key + ": " + Text(entry.value));
    return "{" + base::Join(parts, ", ") + "}";
  }
  return value.text;
}

void Flatten(const Value& value, const std::string& prefix, Flat& flat) {
  for (const auto& entry : *value.map) {
    const std::string key = prefix.empty() ? entry.key : prefix + "." + entry.key;
    if (entry.value.kind == Value::Kind::kMap) {
      Flatten(entry.value, key, flat);
    } else {
      flat.emplace_back(key, Text(entry.value));
    }
  }
}

Flat Flatten(const NodeConfig& config) {
  Flat flat;
  const auto document = base::ParseYaml(ToYaml(config), "configuration");
  if (document.ok() && document->map) Flatten(*document, "", flat);
  return flat;
}

}  // namespace

std::string_view ToString(Effect effect) { return effect == Effect::kNow ? "now" : "restart"; }

Effect EffectOf(std::string_view key) {
  static constexpr std::array<std::string_view, 15> kNow = {"queue.",
                                                            "health.",
                                                            "labels.",
                                                            "devicePlugin.",
                                                            "paths.host",
                                                            "cluster.config.",
                                                            "resources.",
                                                            "sharing.rules",
                                                            "sharing.policy",
                                                            "allocators.assign",
                                                            "containers.",
                                                            "telemetry.",
                                                            "usage.",
                                                            "http.webConfigFile",
                                                            "allocators.local.closedCgroups"};
  // The settings from which specifications are made. Whether and where the hook and the runtime are
  // installed is decided at the start.
  static constexpr std::array<std::string_view, 4> kCdi = {"cdi.hook", "cdi.disableHooks",
                                                           "cdi.enableHooks", "cdi.additionalGids"};
  const bool now =
      std::any_of(kNow.begin(), kNow.end(),
                  [key](std::string_view prefix) { return key.starts_with(prefix); }) ||
      std::find(kCdi.begin(), kCdi.end(), key) != kCdi.end();
  return now && key != "containers.engineSocket" && key != "usage.dir" ? Effect::kNow
                                                                       : Effect::kRestart;
}

std::vector<ConfigChange> Changes(const NodeConfig& now, const NodeConfig& next) {
  const Flat before = Flatten(now), after = Flatten(next);
  std::vector<ConfigChange> changes;
  for (std::size_t i = 0; i < before.size() && i < after.size(); ++i)
    if (before[i].second != after[i].second)
      changes.push_back(
          {before[i].first, before[i].second, after[i].second, EffectOf(before[i].first)});
  return changes;
}

NodeConfig KeepUntilRestart(const NodeConfig& running, NodeConfig next) {
  NodeConfig kept = running;
  kept.paths.host_driver_root = std::move(next.paths.host_driver_root);
  kept.paths.host_dev_root = std::move(next.paths.host_dev_root);
  kept.assignments = std::move(next.assignments);
  kept.closed_cgroups = std::move(next.closed_cgroups);
  kept.queue = next.queue;
  kept.health = std::move(next.health);
  kept.resources = std::move(next.resources);
  kept.resource_per_model = next.resource_per_model;
  kept.sharing.rules = std::move(next.sharing.rules);
  kept.sharing.policy = next.sharing.policy;
  kept.device_ids = next.device_ids;
  kept.plugin_files = next.plugin_files;
  kept.containers = std::move(next.containers);
  kept.containers.engine_socket = running.containers.engine_socket;
  kept.cdi.hook = std::move(next.cdi.hook);
  kept.cdi.disable_hooks = std::move(next.cdi.disable_hooks);
  kept.cdi.enable_hooks = std::move(next.cdi.enable_hooks);
  kept.cdi.additional_gids = next.cdi.additional_gids;
  kept.labels = std::move(next.labels);
  kept.cluster.config_map = std::move(next.cluster.config_map);
  kept.telemetry = std::move(next.telemetry);
  kept.usage = std::move(next.usage);
  kept.usage.dir = running.usage.dir;
  kept.http.web_config_file = std::move(next.http.web_config_file);
  return kept;
}

}  // namespace penstock::api
