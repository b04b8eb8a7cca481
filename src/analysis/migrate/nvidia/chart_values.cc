#include "analysis/migrate/nvidia/chart_values.h"

#include <algorithm>
#include <initializer_list>

namespace penstock::analysis {

namespace {

using base::Value;

bool Is(const Value& map, std::string_view key, Value::Kind kind) {
  const Value* found = map.Find(key);
  return found != nullptr && found->kind == kind;
}

bool HasMap(const Value& map, std::initializer_list<std::string_view> keys) {
  return std::ranges::any_of(
      keys, [&map](std::string_view key) { return Is(map, key, Value::Kind::kMap); });
}

bool HasSettingOfThePlugin(const Value& document) {
  const auto values = PluginChartValues();
  return std::ranges::any_of(
      values, [&document](const ChartValue& one) { return document.Find(one.value) != nullptr; });
}

/// Both of NVIDIA's charts have the key devicePlugin; only the operator's chart has the other
/// operands.
bool IsOfTheOperator(const Value& document) {
  if (HasMap(document,
             {"operator", "toolkit", "dcgmExporter", "driver", "mig", "migManager", "validator"}))
    return true;
  const Value* plugin = document.Find("devicePlugin");
  return plugin != nullptr && plugin->kind == Value::Kind::kMap && HasMap(*plugin, {"config"});
}

/// The source of a chart's image; empty where the values do not set it.
std::string_view ImageOf(const Value& document) {
  const Value* image = document.Find("image");
  const Value* repository =
      image != nullptr && image->kind == Value::Kind::kMap ? image->Find("repository") : nullptr;
  return repository != nullptr && repository->kind == Value::Kind::kString
             ? std::string_view(repository->text)
             : std::string_view();
}

/// The exporter chart's key `config` is not the plugin's: it holds the exporter's YAML file under
/// `data`. serviceMonitor does not identify the chart, since many charts have it.
bool IsOfTheExporter(const Value& document) {
  if (Is(document, "customMetrics", Value::Kind::kString) ||
      Is(document, "arguments", Value::Kind::kList))
    return true;
  if (HasMap(document, {"kubernetesDRA", "tlsServerConfig", "hpcJobMapping"}) ||
      ImageOf(document).ends_with("/dcgm-exporter"))
    return true;
  for (const char* key : {"config", "kubernetes"})
    if (const Value* map = document.Find(key); map != nullptr && map->kind == Value::Kind::kMap)
      for (const char* its : {"data", "enablePodLabels", "enablePodUID", "virtualGPUs"})
        if (map->Find(its) != nullptr && map->Find(its)->kind != Value::Kind::kMap) return true;
  return false;
}

/// ROCm's charts amd-gpu (of the device plugin), device-metrics-exporter, device-config-manager and
/// gpu-operator, by their values.yaml.
Chart RocmChartOf(const Value& document) {
  if (HasMap(document, {"deviceConfig", "kmm"})) return Chart::kRocmOperator;
  if (HasMap(document, {"dp", "lbl", "labeller"})) return Chart::kRocmPlugin;
  if (ImageOf(document).ends_with("/device-metrics-exporter")) return Chart::kRocmExporter;
  if (ImageOf(document).ends_with("/device-config-manager")) return Chart::kRocmConfigManager;
  return Chart::kNone;
}

}  // namespace

Chart ChartOf(const Value& document) {
  if (document.kind != Value::Kind::kMap) return Chart::kNone;
  for (const char* key : {"apiVersion", "kind", "version"})
    if (document.Find(key) != nullptr) return Chart::kNone;
  if (HasMap(document, {"penstock"})) return Chart::kPenstock;
  if (const Chart rocm = RocmChartOf(document); rocm != Chart::kNone) return rocm;
  if (IsOfTheExporter(document)) return Chart::kExporter;
  if (HasMap(document, {"gfd", "config", "nfd", "devicePlugin"}) || HasSettingOfThePlugin(document))
    return IsOfTheOperator(document) ? Chart::kOperator : Chart::kDevicePlugin;
  return !ImageOf(document).empty() || HasMap(document, {"serviceMonitor"}) ? Chart::kOther
                                                                            : Chart::kNone;
}

const char* Describe(Chart chart) {
  switch (chart) {
    case Chart::kNone: return "";
    case Chart::kDevicePlugin: return "values of NVIDIA's device plugin chart";
    case Chart::kOperator: return "values of NVIDIA's GPU operator chart";
    case Chart::kPenstock: return "values of Penstock's chart";
    case Chart::kExporter: return "values of dcgm-exporter's chart";
    case Chart::kRocmPlugin: return "values of AMD's device plugin chart";
    case Chart::kRocmExporter: return "values of the chart of AMD's Device Metrics Exporter";
    case Chart::kRocmConfigManager: return "values of the chart of AMD's Device Config Manager";
    case Chart::kRocmOperator: return "values of AMD's GPU operator chart";
    case Chart::kOther: return "values of a Helm chart";
  }
  return "";
}

std::span<const ChartValue> PluginChartValues() {
  static constexpr ChartValue kValues[] = {
      {"migStrategy", "--mig-strategy"},
      {"failOnInitError", "--fail-on-init-error"},
      {"deviceListStrategy", "--device-list-strategy"},
      {"deviceIDStrategy", "--device-id-strategy"},
      {"compatWithCPUManager", "--pass-device-specs"},
      {"nvidiaDriverRoot", "--nvidia-driver-root"},
      {"nvidiaDevRoot", "--nvidia-dev-root"},
      {"gdrcopyEnabled", "--gdrcopy-enabled"},
      {"gdsEnabled", "--gds-enabled"},
      {"mofedEnabled", "--mofed-enabled"},
      {"deviceDiscoveryStrategy", "--device-discovery-strategy"}};
  return kValues;
}

}  // namespace penstock::analysis
