// Recognises ROCm's programs by what their containers run, as in the manifests of
// ROCm/k8s-device-plugin (k8s-ds-amdgpu-*.yaml, helm/amd-gpu), the charts of
// ROCm/device-metrics-exporter and ROCm/device-config-manager, and what ROCm/gpu-operator makes
// (internal/plugin, nodelabeller, metricsexporter, configmanager).
#include <algorithm>
#include <array>

#include <nlohmann/json.hpp>

#include "analysis/migrate/amd/rocm.h"
#include "analysis/migrate/nvidia/migrate_containers.h"
#include "base/core/strings.h"

namespace penstock::analysis {

namespace {

constexpr std::array<std::string_view, 4> kGlogValues = {"-stderrthreshold", "-v", "-log_dir",
                                                         "-vmodule"};
constexpr std::array<std::string_view, 4> kGlogSwitches = {"-logtostderr", "-alsologtostderr",
                                                           "-log_backtrace_at", "-skip_headers"};

template <typename Names>
bool IsOne(const Names& names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// The words of the command. AMD's operator writes them as one text for a shell.
std::vector<std::string> RocmWords(const Json& container) {
  auto words = Words(container);
  if (words.size() != 3 || words[1] != "-c") return words;
  auto inner = base::Split(words[2], ' ');
  std::erase(inner, "");
  return inner;
}

std::string ProgramOf(const std::vector<std::string>& words) {
  return words.empty() ? "" : words.front().substr(words.front().rfind('/') + 1);
}

/// "rocm/k8s-device-plugin:labeller-latest" → "labeller-latest".
std::string TagOf(const Json& container) {
  const std::string image = TextAt(container, {"image"});
  const auto colon = image.find(':', image.rfind('/') == std::string::npos ? 0 : image.rfind('/'));
  return colon == std::string::npos ? "" : image.substr(colon + 1);
}

/// Adds the flags in Go's form: -name=value, -name value; -- is the same as -.
void AddGoFlags(const std::vector<std::string>& words, Workload& workload) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with('-')) continue;
    std::string flag = words[i].substr(words[i].starts_with("--") ? 1 : 0);
    const auto equals = flag.find('=');
    std::string value = equals == std::string::npos ? "" : flag.substr(equals + 1);
    flag = flag.substr(0, equals);
    const bool takes_value =
        flag == "-pulse" || flag == "-resource_naming_strategy" || IsOne(kGlogValues, flag);
    if (equals == std::string::npos && takes_value && i + 1 < words.size()) value = words[++i];
    if (IsOne(kGlogValues, flag) || IsOne(kGlogSwitches, flag)) continue;
    if (takes_value)
      workload.given.push_back({flag, value, flag});
    else
      workload.unknown.push_back(words[i]);
  }
}

/// The ConfigMap that a container mounts at a folder.
std::string MapMountedAt(const Json& object, const Json& container, std::string_view folder) {
  for (const Json& mount : Items(container, {"volumeMounts"})) {
    std::string path = TextAt(mount, {"mountPath"});
    while (path.ends_with('/')) path.pop_back();
    if (path != folder) continue;
    for (const Json& volume : Items(object, {"spec", "template", "spec", "volumes"}))
      if (TextAt(volume, {"name"}) == TextAt(mount, {"name"}))
        return TextAt(volume, {"configMap", "name"});
  }
  return "";
}

}  // namespace

std::optional<Part> RocmPartOf(const Json& container) {
  const std::string image = ImageName(container), program = ProgramOf(RocmWords(container));
  if (image == "device-metrics-exporter") return Part::kRocmExporter;
  if (image == "device-config-manager") return Part::kRocmConfigManager;
  if (program == "k8s-node-labeller") return Part::kRocmLabeller;
  if (program == "k8s-device-plugin") return Part::kRocmPlugin;
  if (image != "k8s-device-plugin") return std::nullopt;
  const std::string whole = TextAt(container, {"image"}), name = TextAt(container, {"name"});
  const bool amds = whole.starts_with("rocm/") || whole.find("/rocm/") != std::string::npos ||
                    name.find("amd") != std::string::npos;
  if (!amds) return std::nullopt;
  return TagOf(container).starts_with("labeller") ? Part::kRocmLabeller : Part::kRocmPlugin;
}

void TakeRocm(const Json& object, const Json& container, Workload& workload) {
  if (workload.part == Part::kRocmPlugin) AddGoFlags(RocmWords(container), workload);
  if (workload.part == Part::kRocmExporter)
    workload.config_map = MapMountedAt(object, container, "/etc/metrics");
  if (workload.part == Part::kRocmConfigManager)
    workload.config_map = MapMountedAt(object, container, "/etc/config-manager");
  // The operator owns them itself, or by a Module of KMM of the same name (its versions
  // before 1.3).
  for (const Json& owner : Items(object, {"metadata", "ownerReferences"}))
    if (const std::string kind = TextAt(owner, {"kind"});
        kind == "DeviceConfig" || kind == "Module")
      workload.device_config = TextAt(owner, {"name"});
}

void TakeDeviceConfig(const Json& object, Found& found) {
  const std::string name = TextAt(object, {"metadata", "name"});
  if (TextAt(object, {"apiVersion"}).starts_with("amd.com/") && !name.empty())
    found.device_configs.push_back({TextAt(object, {"metadata", "namespace"}), name});
}

bool TakeRocmValues(const Json& values, Chart chart, const std::string& file, Found& found) {
  Workload workload{.kind = "values", .name = file, .from = "values " + file};
  switch (chart) {
    case Chart::kRocmPlugin:
      workload.part = Part::kRocmPlugin;
      AddGoFlags(Words(At(values, {"dp"})), workload);
      if (const Json& labeller = At(values, {"labeller", "enabled"});
          labeller == true || labeller == "true")
        found.workloads.push_back({.part = Part::kRocmLabeller,
                                   .kind = "values",
                                   .name = file,
                                   .from = workload.from + ", labeller.enabled"});
      break;
    case Chart::kRocmExporter: workload.part = Part::kRocmExporter; break;
    case Chart::kRocmConfigManager: workload.part = Part::kRocmConfigManager; break;
    case Chart::kRocmOperator: found.device_configs.push_back({"", "default"}); return true;
    default: return false;
  }
  if (chart != Chart::kRocmPlugin) workload.config_map = TextAt(values, {"configMap"});
  found.workloads.push_back(std::move(workload));
  return true;
}

bool HasRocm(const Found& found) {
  return !found.device_configs.empty() ||
         !WorkloadsOf(found, {Part::kRocmPlugin, Part::kRocmLabeller, Part::kRocmExporter,
                              Part::kRocmConfigManager})
              .empty();
}

}  // namespace penstock::analysis
