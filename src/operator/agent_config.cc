// The rules are those of the template penstock.nodeConfig in deploy/helm/penstock.
#include "operator/agent_config.h"

namespace penstock::cluster {

using api::Switch;

namespace {

/// `auto` depends on what the agent finds; in a pod of the operator it is known.
Switch Known(Switch setting, Switch in_pod) { return setting == Switch::kAuto ? in_pod : setting; }

void SetPaths(const api::PenstockSpec& spec, api::NodeConfig& config) {
  const HostDriver driver = DriverOf(spec);
  api::PathsConfig& paths = config.paths;
  paths.driver_root = kDriverRootInPod;
  paths.dev_root = driver.dev == "/"       ? "/"
                   : driver.separate_dev() ? std::string(kDevRootInPod)
                                           : std::string(kDriverRootInPod);
  paths.host_driver_root = driver.root;
  paths.host_dev_root = driver.dev;
  paths.driver_container_root = driver.container;
  paths.kubelet_dir = api::PathsConfig().kubelet_dir;
}

}  // namespace

HostDriver DriverOf(const api::PenstockSpec& spec) {
  HostDriver driver;
  if (!spec.node.paths.host_driver_root.empty())
    driver.root = spec.node.paths.host_driver_root;
  else
    driver.container = spec.host.driver_root;
  if (!spec.node.paths.driver_container_root.empty())
    driver.container = spec.node.paths.driver_container_root;
  driver.dev = spec.node.paths.host_dev_root.empty() ? driver.root : spec.node.paths.host_dev_root;
  return driver;
}

api::NodeConfig ConfigOfPod(const api::PenstockSpec& spec, const std::string& namespace_name) {
  api::NodeConfig config = spec.node;
  SetPaths(spec, config);
  config.http.listen = api::HttpConfig().listen;  // the pod's command line has it
  config.kubelet_allocator = Known(config.kubelet_allocator, Switch::kOn);
  config.local_allocator = Known(config.local_allocator, Switch::kOff);
  config.cdi.enabled = Known(config.cdi.enabled, Switch::kOn);
  if (config.cdi.enabled == Switch::kOn && config.cdi.install.empty())
    config.cdi.install =
        spec.host.install_dir.empty() ? config.paths.state_dir : spec.host.install_dir;
  config.cluster.enabled = Switch::kOn;
  config.cluster.kubeconfig.clear();
  config.cluster.namespace_name = namespace_name;
  if (!spec.config_maps.configurations.empty()) {
    config.cluster.config_map.name = spec.config_maps.configurations;
    config.cluster.config_map.namespace_name = namespace_name;
    config.cluster.config_map.default_key = spec.config_maps.default_configuration;
    // As NVIDIA's operator: nodes for which nothing says so share nothing.
    if (config.cluster.config_map.fallbacks == api::ConfigMapConfig{}.fallbacks)
      config.cluster.config_map.fallbacks = {"empty"};
  }
  if (!spec.config_maps.layouts.empty())
    config.layouts_file = std::string(kLayoutsInPod) + "/config.yaml";
  if (!spec.config_maps.counters.empty())
    config.telemetry.counters_file = std::string(kCountersInPod) + "/dcgm-metrics.csv";
  if (!spec.config_maps.exporter.empty())
    config.telemetry.exporter_file = std::string(kExporterInPod) + "/config.json";
  if (!spec.config_maps.mode_profiles.empty())
    config.mode_profiles_file = std::string(kModesInPod) + "/config.json";
  if (!spec.config_maps.client_services.empty())
    config.client_services_file = std::string(kClientsInPod) + "/clients.yaml";
  return config;
}

}  // namespace penstock::cluster
