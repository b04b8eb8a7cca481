// Manifests, values of charts and configurations as people keep them in files; files that NVIDIA's stack leaves on a machine.
#include <nlohmann/json.hpp>

#include "app/penstock/migrate.h"
#include "base/core/document.h"
#include "base/core/strings.h"
#include "base/yaml.h"
#include "os/core/file.h"

namespace penstock::app {

namespace {

using base::Value;

Json ToJson(const Value& value) {
  switch (value.kind) {
    case Value::Kind::kNull: return nullptr;
    case Value::Kind::kBool: return value.boolean;
    case Value::Kind::kInt: return value.integer;
    case Value::Kind::kFloat: return value.number;
    case Value::Kind::kString: return value.text;
    case Value::Kind::kList: {
      Json list = Json::array();
      for (const Value& item : *value.list) list.push_back(ToJson(item));
      return list;
    }
    case Value::Kind::kMap: {
      Json map = Json::object();
      for (const Value::Entry& entry : *value.map) map[entry.key] = ToJson(entry.value);
      return map;
    }
  }
  return nullptr;
}

/// Lines that are only "---" part documents; each keeps its place in the file by the empty lines before it, so that errors name the line.
std::vector<std::string> Documents(std::string_view text) {
  std::vector<std::string> documents(1);
  std::size_t line = 0;
  for (const std::string& one : base::Split(text, '\n')) {
    ++line;
    if (one == "---" || one.starts_with("--- ") || one == "---\r") {
      documents.emplace_back(line, '\n');
    } else {
      documents.back() += one + "\n";
    }
  }
  return documents;
}

/// The values of NVIDIA's chart that are settings of the plugin, and the flags they become.
struct ChartValue {
  const char* value;
  const char* flag;
};
constexpr std::array<ChartValue, 11> kChartValues = {{{"migStrategy", "--mig-strategy"},
                                                      {"failOnInitError", "--fail-on-init-error"},
                                                      {"deviceListStrategy", "--device-list-strategy"},
                                                      {"deviceIDStrategy", "--device-id-strategy"},
                                                      {"compatWithCPUManager", "--pass-device-specs"},
                                                      {"nvidiaDriverRoot", "--nvidia-driver-root"},
                                                      {"nvidiaDevRoot", "--nvidia-dev-root"},
                                                      {"gdrcopyEnabled", "--gdrcopy-enabled"},
                                                      {"gdsEnabled", "--gds-enabled"},
                                                      {"mofedEnabled", "--mofed-enabled"},
                                                      {"deviceDiscoveryStrategy", "--device-discovery-strategy"}}};

std::string Plain(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    std::vector<std::string> items;
    for (const Json& item : value) items.push_back(Plain(item));
    return base::Join(items, ",");
  }
  return value.is_null() ? "" : value.dump();
}

/// Of NVIDIA's device plugin chart, or of the GPU Operator's.
bool IsValues(const Json& document) {
  for (const char* key : {"gfd", "config", "nfd", "devicePlugin"})
    if (At(document, {key}).is_object()) return true;
  return std::any_of(kChartValues.begin(), kChartValues.end(), [&](const ChartValue& one) { return document.contains(one.value); });
}

/// Both charts have the key devicePlugin; the operator's alone has its other operands.
bool IsOfTheOperator(const Json& values) {
  for (const char* key : {"operator", "toolkit", "dcgmExporter", "driver", "mig", "migManager", "validator"})
    if (At(values, {key}).is_object()) return true;
  return At(values, {"devicePlugin", "config"}).is_object();
}

void TakeValues(const Json& values, const std::string& file, Found& found) {
  if (IsOfTheOperator(values)) {
    found.policies.push_back({"cluster-policy", TextAt(values, {"devicePlugin", "config", "name"}),
                              TextAt(values, {"devicePlugin", "config", "default"}), TextAt(values, {"mig", "strategy"})});
    return;
  }
  Workload plugin{.part = Part::kDevicePlugin, .kind = "values", .name = file, .from = "values " + file};
  for (const ChartValue& one : kChartValues)
    if (const std::string value = values.contains(one.value) ? Plain(values[one.value]) : ""; !value.empty())
      plugin.given.push_back({one.flag, value, one.value});
  plugin.config_map = TextAt(values, {"config", "name"});
  plugin.default_key = TextAt(values, {"config", "default"});
  if (const auto map = TextsAt(values, {"config", "map"}); !map.empty()) {
    plugin.config_map = file;
    found.config_maps.push_back({file, "", map});
  }
  for (const auto& [key, text] : TextsAt(values, {"config", "map"}))
    found.configs.push_back({"values " + file + ", config.map." + key, "", "", key, text});
  found.workloads.push_back(std::move(plugin));
  const Json& gfd = At(values, {"gfd", "enabled"});
  if (gfd.is_boolean() && gfd.get<bool>())
    found.workloads.push_back(
        {.part = Part::kFeatureDiscovery, .kind = "values", .name = file, .from = "values " + file + ", gfd.enabled"});
}

bool IsPluginConfig(const Json& document) {
  const auto is_map = [&document](std::initializer_list<std::string_view> path) { return At(document, path).is_object(); };
  return TextAt(document, {"version"}) == "v1" || is_map({"sharing"}) || is_map({"flags"}) || is_map({"imex"}) ||
         At(document, {"resources", "gpus"}).is_array() || At(document, {"resources", "mig"}).is_array();
}

}  // namespace

base::Status TakeFile(std::string_view text, const std::string& file, Found& found) {
  for (const std::string& document : Documents(text)) {
    base::Problems problems{file, base::Reading::kLenient};  // manifests have anchors and keys that are there twice
    ASSIGN(const Value value, base::ParseYaml(document, problems));
    const Json json = ToJson(value);
    if (!json.is_object()) continue;
    if (json.contains("kind")) {
      TakeObject(json, found);
    } else if (TextAt(json, {"version"}) != "v1" && IsValues(json)) {
      TakeValues(json, file, found);
    } else if (IsPluginConfig(json)) {
      found.configs.push_back({"file " + file, "", "", "", std::string(document)});
    } else {
      found.remarks.push_back(file + ": holds neither objects of Kubernetes nor values or a configuration of the device plugin");
    }
  }
  return {};
}

std::vector<std::string> FilesOfTheStack(const std::string& root) {
  struct Place {
    const char* folder;
    const char* pattern;
  };
  // Not the plugin's CDI specifications: the agent's have the same names.
  static constexpr std::array<Place, 3> kPlaces = {{{"/etc/kubernetes/node-feature-discovery/features.d", "gfd"},
                                                    {"/var/lib/kubelet/device-plugins", "nvidia-*.sock"},
                                                    {"/run/nvidia", "mps"}}};
  std::vector<std::string> files;
  for (const Place& place : kPlaces)
    for (const std::string& name : os::ListDirectory(root + place.folder).value_or({}))
      if (base::GlobMatch(place.pattern, name)) files.push_back(std::string(place.folder) + "/" + name);
  return files;
}

}  // namespace penstock::app
