// Reads and prints the sections for labels, the device plugin and the cluster.
#include "api/config/node_config_sections.h"

#include <vector>

#include "base/core/strings.h"

namespace penstock::api::internal {

namespace {

using base::MapReader;
using base::Problems;
using base::Value;

const Value kNothing;

void ReadString(MapReader& reader, std::string_view key, std::string& target) {
  if (auto text = reader.String(key)) target = *std::move(text);
}

std::string Line(int indent, std::string_view key, std::string_view value) {
  return std::string(static_cast<std::size_t>(indent), ' ') + std::string(key) + ": " +
         std::string(value) + "\n";
}

void ReadFallbacks(MapReader& reader, Problems& problems, std::vector<std::string>& fallbacks) {
  const Value* list = reader.List("fallback");
  if (list == nullptr) return;
  fallbacks.clear();
  for (const Value& item : *list->list) {
    if (item.kind == Value::Kind::kString &&
        (item.text == "named" || item.text == "single" || item.text == "empty")) {
      fallbacks.push_back(item.text);
    } else {
      problems.Add(item.mark,
                   reader.Path("fallback") + ": an item is none of named, single, empty");
    }
  }
}

void ReadConfigMap(MapReader& cluster, Problems& problems, ConfigMapConfig& config) {
  MapReader reader(MapAt(cluster, "config"), "cluster.config", problems);
  ReadString(reader, "configMap", config.name);
  ReadString(reader, "namespace", config.namespace_name);
  ReadString(reader, "default", config.default_key);
  ReadString(reader, "nodeLabel", config.node_label);
  ReadFallbacks(reader, problems, config.fallbacks);
  reader.Finish();
}

}  // namespace

const Value& MapAt(MapReader& reader, std::string_view key) {
  const Value* map = reader.Map(key);
  return map != nullptr ? *map : kNothing;
}

void ReadSwitch(MapReader& reader, std::string_view key, Switch& target) {
  const Value* value = reader.Any(key);
  if (value == nullptr || value->kind == Value::Kind::kNull) return;
  if (value->kind == Value::Kind::kBool) {
    target = value->boolean ? Switch::kOn : Switch::kOff;
  } else if (value->kind == Value::Kind::kString && value->text == "auto") {
    target = Switch::kAuto;
  } else if (value->kind == Value::Kind::kString && (value->text == "on" || value->text == "off")) {
    target = value->text == "on" ? Switch::kOn : Switch::kOff;
  } else {
    reader.Problem(key, (value->text.empty() ? std::string(Describe(value->kind))
                                             : "\"" + value->text + "\"") +
                            " is none of auto, on, off");
  }
}

std::vector<std::string> ReadSelectors(MapReader& reader, Problems& problems) {
  std::vector<std::string> selectors;
  const Value* list = reader.List("devices");
  if (list == nullptr) return selectors;
  for (const Value& item : *list->list) {
    const bool index = item.kind == Value::Kind::kInt && item.integer >= 0;
    if (index || (item.kind == Value::Kind::kString && !item.text.empty())) {
      selectors.push_back(index ? std::to_string(item.integer) : item.text);
    } else {
      problems.Add(item.mark, reader.Path("devices") +
                                  ": an item must be a device's id, its index, or a glob over the "
                                  "model such as \"*A100*\"");
    }
  }
  if (list->list->empty())
    reader.Problem("devices", "is empty; leave the key out to mean all devices");
  return selectors;
}

std::string SelectorsText(const std::vector<std::string>& devices) {
  std::vector<std::string> quoted;
  for (const std::string& device : devices) quoted.push_back(Quoted(device));
  return "[" + base::Join(quoted, ", ") + "]";
}

std::string Text(base::Duration duration) {
  const auto nanoseconds = duration.count();
  if (nanoseconds % 1'000'000'000 == 0) return std::to_string(nanoseconds / 1'000'000'000) + "s";
  if (nanoseconds % 1'000'000 == 0) return std::to_string(nanoseconds / 1'000'000) + "ms";
  return std::to_string(nanoseconds) + "ns";
}

std::string_view Text(Switch value) {
  return value == Switch::kAuto ? "auto" : value == Switch::kOn ? "on" : "off";
}

std::string Quoted(std::string_view text) {
  static constexpr std::string_view kHex = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      quoted += {'\\', 'x', kHex[static_cast<unsigned char>(c) >> 4], kHex[c & 15]};
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

void ReadDevicePlugin(MapReader& top, Problems& problems, NodeConfig& config) {
  MapReader reader(MapAt(top, "devicePlugin"), "devicePlugin", problems);
  if (const auto ids = reader.OneOf("deviceIDStrategy", {"uuid", "index"}))
    config.device_ids = *ids == "index" ? DeviceIds::kIndex : DeviceIds::kUuid;
  if (const auto files = reader.OneOf("configFiles", {"extended", "as-nvidia"}))
    config.plugin_files = *files == "as-nvidia" ? PluginFiles::kAsNvidia : PluginFiles::kExtended;
  reader.Finish();
}

void ReadLabels(MapReader& top, Problems& problems, LabelsConfig& labels) {
  MapReader reader(MapAt(top, "labels"), "labels", problems);
  ReadSwitch(reader, "node", labels.node);
  ReadSwitch(reader, "nodeFeature", labels.node_feature);
  ReadString(reader, "featuresFile", labels.features_file);
  ReadSwitch(reader, "hostFeatures", labels.host_features);
  labels.timestamp = reader.Bool("timestamp").value_or(labels.timestamp);
  ReadString(reader, "machineTypeFile", labels.machine_type_file);
  reader.Finish();
}

void ReadCluster(MapReader& top, Problems& problems, ClusterConfig& cluster) {
  MapReader reader(MapAt(top, "cluster"), "cluster", problems);
  ReadSwitch(reader, "enabled", cluster.enabled);
  ReadString(reader, "kubeconfig", cluster.kubeconfig);
  ReadString(reader, "namespace", cluster.namespace_name);
  ReadSwitch(reader, "nodeState", cluster.node_state);
  ReadSwitch(reader, "events", cluster.events);
  ReadSwitch(reader, "nodeStatus", cluster.node_status);
  ReadConfigMap(reader, problems, cluster.config_map);
  reader.Finish();
}

std::string DevicePluginText(const NodeConfig& config) {
  return "devicePlugin:\n" +
         Line(2, "deviceIDStrategy", config.device_ids == DeviceIds::kIndex ? "index" : "uuid") +
         Line(2, "configFiles",
              config.plugin_files == PluginFiles::kAsNvidia ? "as-nvidia" : "extended");
}

std::string LabelsText(const LabelsConfig& labels) {
  return "labels:\n" + Line(2, "node", Text(labels.node)) +
         Line(2, "nodeFeature", Text(labels.node_feature)) +
         Line(2, "featuresFile", Quoted(labels.features_file)) +
         Line(2, "hostFeatures", Text(labels.host_features)) +
         Line(2, "timestamp", labels.timestamp ? "true" : "false") +
         Line(2, "machineTypeFile", Quoted(labels.machine_type_file));
}

std::string ClusterText(const ClusterConfig& cluster) {
  const ConfigMapConfig& config = cluster.config_map;
  return "cluster:\n" + Line(2, "enabled", Text(cluster.enabled)) +
         Line(2, "kubeconfig", Quoted(cluster.kubeconfig)) +
         Line(2, "namespace", Quoted(cluster.namespace_name)) +
         Line(2, "nodeState", Text(cluster.node_state)) + Line(2, "events", Text(cluster.events)) +
         Line(2, "nodeStatus", Text(cluster.node_status)) + "  config:\n" +
         Line(4, "configMap", Quoted(config.name)) +
         Line(4, "namespace", Quoted(config.namespace_name)) +
         Line(4, "default", Quoted(config.default_key)) +
         Line(4, "fallback", "[" + base::Join(config.fallbacks, ", ") + "]") +
         Line(4, "nodeLabel", Quoted(config.node_label));
}

}  // namespace penstock::api::internal
