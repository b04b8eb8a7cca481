// Converts labels back into device facts, and computes resources and labels from these by the
// agent's own rules.
#include "analysis/migrate/nvidia/migrate_offer.h"

#include <algorithm>
#include <memory>

#include <nlohmann/json.hpp>

#include "api/allocators.h"
#include "api/config/remote_config.h"
#include "backend/all.h"
#include "base/core/strings.h"
#include "view/preview.h"

namespace penstock::analysis {

namespace {

using Labels = std::map<std::string, std::string>;
using node::inventory::Snapshot;

constexpr int kMaxGpus = 64, kMaxReplicas = 10000,
              kExampleGpus = 8;  // larger values of a label are ignored
constexpr char kGpu[] = "nvidia.com/gpu", kConfigLabel[] = "nvidia.com/device-plugin.config";

std::string Text(const Labels& labels, const std::string& key) {
  const auto found = labels.find("nvidia.com/" + key);
  return found == labels.end() ? "" : found->second;
}

bool IsMig(const Labels& labels) {
  return Text(labels, "gpu.product").find("-MIG-") != std::string::npos;
}

/// The model's name without its sharing or MIG suffix: "Tesla-T4-SHARED",
/// "NVIDIA-A100-SXM4-40GB-MIG-1g.5gb".
std::string ModelOf(std::string product) {
  if (product.ends_with("-SHARED"))
    product.resize(product.size() - std::string_view("-SHARED").size());
  return product.substr(0, product.find("-MIG-"));
}

device::Facts FactsOf(const Labels& labels, int index) {
  device::Facts facts;
  facts.id = "GPU-" + std::to_string(index);
  facts.vendor = "nvidia";
  facts.index = index;
  facts.model = ModelOf(Text(labels, "gpu.product"));
  facts.memory = base::Mebibytes(base::ParseUint(Text(labels, "gpu.memory")).value_or(0));
  facts.architecture = Text(labels, "gpu.family");
  const std::string major = Text(labels, "gpu.compute.major"),
                    minor = Text(labels, "gpu.compute.minor");
  if (!major.empty() && !minor.empty()) facts.architecture_version = major + "." + minor;
  if (IsMig(labels)) facts.withheld = "MIG mode is enabled";
  return facts;
}

device::Driver DriverOf(const Labels& labels) {
  device::Driver driver{.vendor = "nvidia",
                        .version = Text(labels, "cuda.driver-version.full"),
                        .runtime_version = Text(labels, "cuda.runtime-version.full")};
  // Before 0.15, no label held the whole version.
  if (const std::string major = Text(labels, "cuda.driver.major");
      driver.version.empty() && !major.empty()) {
    driver.version = major + "." + Text(labels, "cuda.driver.minor");
    if (const std::string revision = Text(labels, "cuda.driver.rev"); !revision.empty())
      driver.version += "." + revision;
  }
  if (const std::string major = Text(labels, "cuda.runtime.major");
      driver.runtime_version.empty() && !major.empty())
    driver.runtime_version = major + "." + Text(labels, "cuda.runtime.minor");
  return driver;
}

Snapshot SnapshotOf(const std::vector<device::Facts>& gpus, device::Driver driver) {
  Snapshot snapshot;
  snapshot.vendors = {{.vendor = "nvidia",
                       .driver = std::make_shared<const device::Driver>(std::move(driver)),
                       .reason = ""}};
  for (const device::Facts& gpu : gpus) {
    snapshot.devices.push_back({.facts = std::make_shared<const device::Facts>(gpu),
                                .number = gpu.index,
                                .withheld = gpu.withheld});
    snapshot.devices.back().health.state = device::HealthState::kHealthy;
  }
  return snapshot;
}

std::int64_t Capacity(const LabelledNode& node, const std::string& name) {
  const auto found = node.capacity.find(name);
  return found == node.capacity.end() ? 0 : found->second;
}

/// The number of GPUs behind the node's capacity under a configuration.
std::int64_t CountByCapacity(const LabelledNode& node, const api::NodeConfig& config) {
  for (const auto& [name, each] : OfferOf(config, SnapshotOf({FactsOf({}, 0)}, {})).resources)
    if (each > 0 && Capacity(node, name) > 0) return Capacity(node, name) / each;
  return Capacity(node, kGpu);
}

const ConfigMap* FindConfigMap(const Found& found, const Workload& plugin) {
  const auto map = std::ranges::find_if(found.config_maps, [&plugin](const ConfigMap& one) {
    const bool here = one.namespace_name.empty() || plugin.namespace_name.empty() ||
                      one.namespace_name == plugin.namespace_name;
    return one.name == plugin.config_map && here;
  });
  return map == found.config_maps.end() ? nullptr : &*map;
}

/// The plugin of a node; under an operator, completed from its policy.
std::optional<Workload> PluginOf(const Found& found, const LabelledNode& node) {
  std::optional<Workload> plugin;
  for (const Workload* one : PluginsOf(found, node))
    if (!plugin || plugin->config_map.empty()) plugin = *one;
  if (!plugin && !found.policies.empty()) plugin.emplace();
  if (plugin && plugin->config_map.empty() && !found.policies.empty()) {
    plugin->config_map = found.policies.front().config_map;
    plugin->default_key = found.policies.front().default_key;
    plugin->namespace_name.clear();
  }
  return plugin;
}

}  // namespace

std::vector<const Workload*> PluginsOf(const Found& found, const LabelledNode& node) {
  auto plugins = WorkloadsOf(found, {Part::kDevicePlugin});
  std::erase_if(plugins, [&node](const Workload* one) {
    return !node.name.empty() && !std::ranges::all_of(one->selects, [&node](const auto& wanted) {
      const auto label = node.labels.find(wanted.first);
      return label != node.labels.end() && label->second == wanted.second;
    });
  });
  return plugins;
}

PluginSettings SettingsOf(const Found& found, const LabelledNode& node) {
  const auto plugin = PluginOf(found, node);
  PluginSettings settings{.known = plugin.has_value()};
  if (plugin) settings.given = plugin->given;
  if (!plugin || plugin->config_map.empty()) {  // the pod may have its file from elsewhere, and
                                                // that file was passed along with the manifests
    if (found.configs.size() != 1 || !found.configs.front().key.empty()) return settings;
    settings.known = true;
    settings.text = found.configs.front().text;
    settings.origin = found.configs.front().from;
    return settings;
  }
  api::ConfigMapConfig where{.name = plugin->config_map,
                             .namespace_name = plugin->namespace_name,
                             .default_key = plugin->default_key};
  if (!plugin->fallbacks.empty() && !plugin->fallbacks.front().empty())
    where.fallbacks = plugin->fallbacks;
  const ConfigMap* map = FindConfigMap(found, *plugin);
  if (map != nullptr && !map->namespace_name.empty()) where.namespace_name = map->namespace_name;
  const auto label = node.labels.find(kConfigLabel);
  const Json object = map == nullptr ? Json() : Json{{"data", map->data}};
  const auto desired = api::ChooseConfig(where, label == node.labels.end() ? "" : label->second,
                                         map == nullptr ? nullptr : &object);
  settings.text = desired.text;
  settings.origin = desired.origin;
  settings.problem = desired.problem;
  settings.known = desired.problem.empty();
  return settings;
}

std::optional<api::NodeConfig> ConfigOf(const PluginSettings& settings, api::PluginFiles files) {
  api::NodeConfig base;
  base.plugin_files = files;
  const auto read = api::compat::TranslateDevicePlugin(
      settings.text, settings.origin, settings.given, base, base::ReadingMode::kLenient);
  return read.ok() ? std::optional(read->config) : std::nullopt;
}

api::NodeConfig ConfigOfLabels(const Labels& labels) {
  api::NodeConfig config;
  const auto replicas = base::ParseInt(Text(labels, "gpu.replicas")).value_or(1);
  if (replicas < 2 || replicas > kMaxReplicas || IsMig(labels)) return config;
  const bool mps = Text(labels, "gpu.sharing-strategy") == "mps",
             renamed = !Text(labels, "gpu.product").ends_with("-SHARED");
  config.sharing.rules = {
      {.resource = kGpu,
       .strategy = mps ? api::ShareStrategy::kServer : api::ShareStrategy::kTimeSlicing,
       .replicas = static_cast<int>(replicas),
       .rename = renamed ? "nvidia.com/gpu.shared" : ""}};
  return config;
}

Snapshot GpusOf(const LabelledNode& node, const api::NodeConfig& config) {
  auto count = base::ParseInt(Text(node.labels, "gpu.count")).value_or(0);
  if (count == 0) count = CountByCapacity(node, config);
  std::vector<device::Facts> gpus;
  if (count <= 0 || count > kMaxGpus) return {};
  for (int i = 0; i < count; ++i) gpus.push_back(FactsOf(node.labels, i));
  return SnapshotOf(gpus, DriverOf(node.labels));
}

Snapshot ExampleGpus(const api::NodeConfig& config) {
  std::vector<device::Facts> gpus;
  for (int i = 0; i < kExampleGpus; ++i) {
    gpus.push_back(FactsOf({}, i));
    if (config.resources.empty()) continue;
    for (const char letter : config.resources.front().pattern)
      if (letter != '*') gpus.back().model += letter == '?' ? 'x' : letter;
  }
  return SnapshotOf(gpus, {});
}

Offered OfferOf(const api::NodeConfig& config, const Snapshot& gpus, const std::string& machine) {
  api::NodeConfig without_time = config;
  without_time.labels.timestamp = false;
  const node::ledger::Snapshot nobody;
  const auto preview = view::MakePreview(without_time, {.inventory = gpus,
                                                        .ledger = nobody,
                                                        .dialect_of = backend::FindDialect,
                                                        .machine = {.product = machine},
                                                        .nfd = true});
  Offered offered{.labels = preview.labels};
  for (const auto& offer : preview.offers)
    if (api::FindAllocator(offer.allocator).advertises && !offer.slots.empty())
      offered.resources[offer.resource] += static_cast<std::int64_t>(offer.slots.size());
  const auto& drivers = gpus.vendors;
  if (drivers.empty() ||
      drivers.front().driver->version.empty())  // labels that depend on the driver are not
                                                // predicted without its version
    std::erase_if(offered.labels,
                  [](const auto& label) { return label.first.starts_with("nvidia.com/cuda."); });
  return offered;
}

}  // namespace penstock::analysis
