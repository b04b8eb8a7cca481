// What changes when Penstock replaces ROCm's programs: resources, labels, series, files, and the
// settings that have an equivalent or none. docs/amd.md says the same for people.
#include <algorithm>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "analysis/metric_names.h"
#include "analysis/migrate/amd/rocm.h"
#include "analysis/migrate/nvidia/migrate_changes.h"
#include "api/compat/amd/dcm_profiles.h"
#include "api/compat/amd/metrics_config.h"
#include "backend/all.h"
#include "backend/counter_fields.h"
#include "base/core/strings.h"

namespace penstock::analysis {

namespace {

constexpr char kGpu[] = "amd.com/gpu";
constexpr char kProfileLabel[] = "dcm.amd.com/gpu-config-profile";
constexpr char kModesLabel[] = "amd.com/gpu.compute-memory-partition";
constexpr char kDcmTaint[] = "amd-dcm";
constexpr char kConfigFile[] = "config.json";  // the key of both ConfigMaps

using Amounts = std::map<std::string, std::int64_t>;

/// "amd.com/cpx_nps4": by the strategy mixed.
bool NamesModes(const std::string& resource) {
  return resource.starts_with(kAmdDomain) && resource.find("_nps") != std::string::npos;
}

std::string ValueOf(const std::map<std::string, std::string>& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? "" : found->second;
}

/// What AMD's plugin offers now.
Amounts OfferedNow(const LabelledNode& node) {
  Amounts now;
  for (const auto& [name, amount] : node.capacity)
    if ((name == kGpu || NamesModes(name)) && amount > 0) now[name] = amount;
  return now;
}

/// What the agent will offer. It offers Instinct accelerators alone, which the labeller's family
/// "AI" tells from other GPUs (docs/reference/labels.md).
Amounts OfferedThen(const LabelledNode& node, const Amounts& now, bool mixed) {
  const std::string family = ValueOf(node.labels, "amd.com/gpu.family");
  if (!family.empty() && family != "AI") return {};
  Amounts then;
  for (const auto& [name, amount] : now) {
    if (mixed) {
      const std::string modes = ValueOf(node.labels, kModesLabel);
      then[name == kGpu && !modes.empty() ? kAmdDomain + modes : name] += amount;
    } else {  // those that are as most are
      then[kGpu] = std::max(then[kGpu], amount);
    }
  }
  return then;
}

std::string NoteOnRocm(const std::string& name, std::int64_t now, std::int64_t then,
                       const Amounts& all) {
  if (now == then) return "the same name, one for each GPU or partition";
  if (all.empty()) return "only Instinct accelerators are offered";
  if (then == 0) return "by the other names of this list";
  return NamesModes(name) || now == 0
             ? "by parts.strategy"
             : "of GPUs that are divided differently those are offered that are as most are";
}

std::string ShownAmount(std::int64_t amount) { return amount == 0 ? "" : std::to_string(amount); }

std::int64_t AmountIn(const Amounts& amounts, const std::string& name) {
  const auto found = amounts.find(name);
  return found == amounts.end() ? 0 : found->second;
}

void AddRocmResources(const LabelledNode& node, bool mixed, Migration& plan) {
  const Amounts now = OfferedNow(node), then = OfferedThen(node, now, mixed);
  std::set<std::string> names;
  for (const Amounts* side : {&now, &then})
    for (const auto& [name, amount] : *side) names.insert(name);
  for (const std::string& name : names) {
    const std::int64_t before = AmountIn(now, name), after = AmountIn(then, name);
    CountOnNodes(plan.resources, {name, ShownAmount(before), ShownAmount(after), 0,
                                  NoteOnRocm(name, before, after, then)});
  }
}

/// The labels that the agent does not write stay on the node as the labeller left them.
void AddRocmLabels(const LabelledNode& node, Migration& plan) {
  static constexpr char kFirmware[] = "beta.amd.com/gpu.firmware.", kMode[] = "amd.com/gpu.mode",
                        kNote[] =
                            "not written by the agent: it stays as the labeller left it "
                            "(kubectl label node NODE KEY-)";
  const auto firmware = node.labels.lower_bound(kFirmware);
  if (firmware != node.labels.end() && firmware->first.starts_with(kFirmware))
    CountOnNodes(plan.labels, {std::string(kFirmware) + "*", "set", "set", 0, kNote});
  if (const std::string mode = ValueOf(node.labels, kMode); !mode.empty())
    CountOnNodes(plan.labels, {kMode, mode, mode, 0, kNote});
}

const std::string* FileIn(const Found& found, const Workload& workload) {
  for (const ConfigMap& one : found.config_maps) {
    const bool here = one.namespace_name.empty() || workload.namespace_name.empty() ||
                      one.namespace_name == workload.namespace_name;
    if (one.name != workload.config_map || !here) continue;
    const auto file = one.data.find(kConfigFile);
    if (file != one.data.end()) return &file->second;
  }
  return nullptr;
}

std::string OneLine(const std::string& text) { return base::Join(base::Split(text, '\n'), "; "); }

/// The label of the nodes is followed as by DCM; the profiles are those of its ConfigMap.
void AddProfiles(const Found& found, const std::string& only, Migration& plan) {
  std::optional<api::compat::DcmProfiles> profiles;
  std::string from;
  for (const Workload* one : WorkloadsOf(found, {Part::kRocmConfigManager})) {
    const std::string* text = one->config_map.empty() ? nullptr : FileIn(found, *one);
    if (text == nullptr) continue;
    from = "ConfigMap " + one->config_map;
    auto read = api::compat::TranslateDcmProfiles(*text, from + ", key " + kConfigFile);
    if (!read.ok()) {
      plan.problems.push_back(OneLine(read.error().message()));
      continue;
    }
    profiles = *std::move(read);
    for (const std::string& remark : profiles->remarks)
      plan.remarks.push_back(from + ", key " + kConfigFile + ": " + remark);
  }
  std::map<std::string, std::vector<std::string>> requested;  // profile → nodes
  for (const LabelledNode& node : found.nodes)
    if (const std::string profile = ValueOf(node.labels, kProfileLabel);
        !profile.empty() && (only.empty() || node.name == only))
      requested[profile].push_back(node.name);
  for (const auto& [profile, nodes] : requested) {
    const std::string what = std::string(kProfileLabel) + "=" + profile + " (" + Named(nodes) + ")";
    plan.remarks.push_back(
        what + ": the agent follows this label; GPUs that are divided so already are not touched");
    if (!profiles) continue;
    const auto names = profiles->layouts.names();
    const auto wrong = profiles->wrong.find(profile);
    if (wrong != profiles->wrong.end())
      plan.problems.push_back(what + ": " + OneLine(wrong->second.text));
    else if (std::ranges::find(names, profile) == names.end())
      plan.problems.push_back(what + ": " + from +
                              " has no such profile: correct the label, or add the profile");
  }
}

/// The prefix of the exporter's series, and what of its file has no effect here.
std::string ReadExporterFile(const Found& found, const Workload& exporter, Migration& plan) {
  const std::string* text = exporter.config_map.empty() ? nullptr : FileIn(found, exporter);
  if (text == nullptr) return "";
  const auto config = api::compat::TranslateMetricsConfig(
      *text, "ConfigMap " + exporter.config_map + ", key " + kConfigFile,
      backend::SettingsFields());
  if (!config.ok()) {
    plan.problems.push_back(OneLine(config.error().message()));
    return "";
  }
  for (const std::string& remark : config->remarks) plan.remarks.push_back(remark);
  return config->settings.prefix;
}

/// Series that queries use and that no page has. Which of the others the exporter shows is not
/// worth a row each: the remarks on its file say so.
void AddRocmSeries(const Found& found, const std::string& prefix, Migration& plan) {
  for (const api::compat::CounterField& field : backend::SettingsFields()) {
    if (field.unavailable.empty()) continue;
    const std::string name = prefix + std::string(field.name);
    const auto users = QueriesThatName(found, name);
    if (users.empty()) continue;
    plan.metrics.push_back({name, "shown", "", 0, std::string(field.unavailable)});
    plan.lost.push_back("metric " + name + ": " + std::string(field.unavailable) + "; used by " +
                        Named(users));
  }
}

void AddPluginSettings(const Found& found, Migration& plan) {
  for (const Workload* one : WorkloadsOf(found, {Part::kRocmPlugin})) {
    for (const auto& given : one->given)
      if (given.flag == "-pulse")
        plan.remarks.push_back(
            one->from + ": -pulse=" + given.value +
            ": health is read in any case, and of each GPU (docs/amd.md); health.poll has the "
            "interval");
    for (const std::string& flag : one->unknown)
      plan.remarks.push_back(one->from + ": " + flag +
                             " is not a setting of the plugin that has an equivalent here");
  }
}

void AddRocmFiles(const Found& found, Migration& plan) {
  for (const std::string& file : found.files)
    if (file.ends_with("/amd.json"))
      plan.files.push_back({file, "written by amd-ctk", "unchanged", 0,
                            "`penstock runtime doctor` reports whether its names conflict with the "
                            "agent's"});
  if (WorkloadsOf(found, {Part::kRocmPlugin}).empty()) return;
  plan.files.push_back({"/var/lib/kubelet/device-plugins/amd.com_*", "the plugin's sockets",
                        "penstock-amd.com-*.sock", 0, ""});
}

void AddOperator(const Found& found, Migration& plan) {
  for (const DeviceConfigName& one : found.device_configs) {
    plan.found.push_back("DeviceConfig " + one.namespace_name +
                         (one.namespace_name.empty() ? "" : "/") + one.name +
                         " of AMD's GPU Operator");
    plan.remarks.push_back("DeviceConfig " + one.name +
                           ": Penstock's operator (chart gpu-operator) reads a DeviceConfig, too, "
                           "in its own namespace (docs/amd.md); this plan is for the chart "
                           "penstock, without an operator. An uninstall of AMD's chart deletes the "
                           "DeviceConfigs of all namespaces, unless it is without hooks");
  }
}

}  // namespace

void AddRocm(const Found& found, const std::string& only, Migration& plan) {
  AddOperator(found, plan);
  AddPluginSettings(found, plan);
  const bool mixed = KeepsNamesOfModes(found);
  for (const LabelledNode& node : found.nodes) {
    if (!only.empty() && node.name != only) continue;
    AddRocmResources(node, mixed, plan);
    AddRocmLabels(node, plan);
    if (node.taints.contains(kDcmTaint))
      plan.problems.push_back("node " + node.name + " has the taint " + kDcmTaint +
                              ", which the agents do not tolerate and do not need: kubectl taint "
                              "node " +
                              ForShell(node.name) + " " + kDcmTaint + "-");
  }
  if (found.nodes.empty() && !WorkloadsOf(found, {Part::kRocmPlugin}).empty())
    plan.resources.push_back({mixed ? "amd.com/<compute>_<memory>" : kGpu, "", "", 0,
                              "the same name, one for each GPU or partition"});
  AddProfiles(found, only, plan);
  std::string prefix;
  for (const Workload* one : WorkloadsOf(found, {Part::kRocmExporter})) {
    prefix = ReadExporterFile(found, *one, plan);
    AddRocmSeries(found, prefix, plan);
    AddScraping(found, *one, "port 5000", plan);
  }
  AddRocmFiles(found, plan);
}

}  // namespace penstock::analysis
