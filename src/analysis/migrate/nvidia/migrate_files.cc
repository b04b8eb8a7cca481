// Reads manifests, chart values and plugin configurations from files; finds the files that the
// vendors' programs leave on a machine.
#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "analysis/migrate/amd/rocm.h"
#include "analysis/migrate/nvidia/chart_values.h"
#include "analysis/migrate/nvidia/migrate.h"
#include "base/core/document.h"
#include "base/core/json_text.h"
#include "base/core/strings.h"
#include "base/yaml.h"
#include "os/core/file.h"

namespace penstock::analysis {

namespace {

using base::Value;

constexpr std::size_t kMaxKeys = 8;  // the most keys that a message names

/// Splits the text at lines that are only "---". Empty lines before each document keep its position
/// in the file, so that errors name the right line.
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

std::string Plain(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    std::vector<std::string> items;
    for (const Json& item : value) items.push_back(Plain(item));
    return base::Join(items, ",");
  }
  return value.is_null() ? "" : base::JsonText(value);
}

void TakeValues(const Json& values, Chart chart, const std::string& file, Found& found) {
  if (chart == Chart::kOperator) {
    found.policies.push_back(PolicyOf(values, "cluster-policy", "values " + file));
    found.policies.back().values_file = file;
    return;
  }
  Workload plugin{
      .part = Part::kDevicePlugin, .kind = "values", .name = file, .from = "values " + file};
  for (const ChartValue& one : PluginChartValues())
    if (const std::string value = values.contains(one.value) ? Plain(values[one.value]) : "";
        !value.empty())
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
  if (Plain(At(values, {"gfd", "enabled"})) == "true")
    found.workloads.push_back({.part = Part::kFeatureDiscovery,
                               .kind = "values",
                               .name = file,
                               .from = "values " + file + ", gfd.enabled"});
}

/// Adds the exporter that the chart creates from these values.
void TakeExporterValues(const Json& values, const std::string& file, Found& found) {
  Workload exporter{
      .part = Part::kExporter, .kind = "values", .name = file, .from = "values " + file};
  const std::string tag = TextAt(values, {"image", "tag"});
  exporter.image = tag.empty() ? "" : "dcgm-exporter:" + tag;
  TakeExporter(Json(),
               Json{{"args", At(values, {"arguments"})},
                    {"env", At(values, {"extraEnv"})},
                    {"hpcJobMapping", At(values, {"hpcJobMapping"})}},
               exporter);
  if (const std::string text = TextAt(values, {"customMetrics"}); !text.empty())
    found.counters.push_back({exporter.from + ", customMetrics", "", "", "", text});
  found.workloads.push_back(std::move(exporter));
}

bool IsPluginConfig(const Json& document) {
  const auto is_map = [&document](std::initializer_list<std::string_view> path) {
    return At(document, path).is_object();
  };
  return TextAt(document, {"version"}) == "v1" || is_map({"sharing"}) || is_map({"flags"}) ||
         is_map({"imex"}) || At(document, {"resources", "gpus"}).is_array() ||
         At(document, {"resources", "mig"}).is_array();
}

/// Says in one sentence what a document of unknown type contains.
std::string WhyUnknown(const Json& document) {
  static constexpr char kReads[] =
      "; accepted are manifests (`helm get manifest RELEASE`), values of the charts of NVIDIA's "
      "device plugin, GPU Operator and dcgm-exporter and of ROCm's, and configurations of the "
      "plugin";
  if (!document.is_object()) return std::string("is not a map of keys") + kReads;
  if (document.contains("apiVersion"))
    return "is a Kubernetes object without a kind: is the file truncated?";
  std::vector<std::string> keys;
  for (const auto& [key, value] : document.items())
    if (keys.size() < kMaxKeys) keys.push_back(key);
  return "is not a known document of NVIDIA's or ROCm's; its keys are " + base::Join(keys, ", ") +
         (document.size() > kMaxKeys ? ", …" : "") + kReads;
}

/// Says why an object of this kind is of no use here; empty where it is not known to be useless.
std::string WhyUseless(const Json& object) {
  const std::string kind = TextAt(object, {"kind"}), name = TextAt(object, {"metadata", "name"});
  if (kind == "Secret" && TextAt(object, {"type"}) == "helm.sh/release.v1")
    return "Secret " + name +
           " is a release as stored by Helm; pass the output of `helm get manifest " +
           TextAt(object, {"metadata", "labels", "name"}) + "` instead";
  if (kind == "DaemonSet" && !At(object, {"spec", "template", "spec", "containers"}).is_array())
    return "DaemonSet " + name + " has no containers: is the file truncated?";
  return "";
}

void TakeDocument(const Json& document, Chart chart, const std::string& text,
                  const std::string& file, const std::string& where, Found& found) {
  if (document.is_object() && document.contains("kind")) {
    if (const std::string why = WhyUseless(document); !why.empty())
      found.problems.push_back(where + ": " + why);
    TakeObject(document, found);
  } else if (chart == Chart::kExporter) {
    TakeExporterValues(document, file, found);
  } else if (TakeRocmValues(document, chart, file, found)) {
    return;
  } else if (chart == Chart::kDevicePlugin || chart == Chart::kOperator ||
             chart == Chart::kPenstock) {
    TakeValues(document, chart, file, found);
  } else if (document.is_object() && document.contains("mig-configs")) {
    found.layouts.push_back({"file " + file, "", "", "", text});
  } else if (document.is_object() && IsPluginConfig(document)) {
    found.configs.push_back({"file " + file, "", "", "", text});
  } else {
    found.problems.push_back(where + ": " + WhyUnknown(document));
  }
}

/// The number of the first line that is not empty.
std::size_t FirstLine(const std::string& document) {
  const auto at = document.find_first_not_of(" \n\r");
  return 1 + static_cast<std::size_t>(std::count(
                 document.begin(),
                 at == std::string::npos ? document.end()
                                         : document.begin() + static_cast<std::ptrdiff_t>(at),
                 '\n'));
}

}  // namespace

base::Status TakeFile(std::string_view text, const std::string& file, Found& found) {
  for (const std::string& document : Documents(text)) {
    base::Problems problems{
        file, base::ReadingMode::kLenient};  // manifests contain anchors and duplicate keys
    ASSIGN(const Value value, base::ParseYaml(document, problems));
    const Json json = base::JsonOf<Json>(value);
    if (!json.is_null() && !(json.is_object() && json.empty()))
      TakeDocument(json, ChartOf(value), document, file,
                   file + ":" + std::to_string(FirstLine(document)), found);
  }
  return {};
}

std::vector<std::string> FilesOfTheStack(const std::string& root) {
  struct Place {
    const char* folder;
    const char* pattern;
  };
  // The plugin's CDI specifications are left out: the agent's have the same names.
  static constexpr std::array<Place, 9> kPlaces = {
      {{"/etc/kubernetes/node-feature-discovery/features.d", "gfd"},
       {"/var/lib/kubelet/device-plugins", "nvidia-*.sock"},
       {"/run/nvidia", "mps"},
       {"/etc/nvidia-container-runtime", "config.toml"},
       {"/etc/cdi", "nvidia.yaml"},
       {"/var/run/cdi", "nvidia.yaml"},
       {"/etc/enroot/hooks.d", "98-nvidia.sh"},
       {"/var/lib/kubelet/device-plugins", "amd.com_*"},
       {"/etc/cdi", "amd.json"}}};
  std::vector<std::string> files;
  for (const Place& place : kPlaces)
    for (const std::string& name : os::ListDirectory(root + place.folder).value_or({}))
      if (base::GlobMatch(place.pattern, name))
        files.push_back(std::string(place.folder) + "/" + name);
  return files;
}

}  // namespace penstock::analysis
