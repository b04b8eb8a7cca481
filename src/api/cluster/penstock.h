// The Penstock resource (penstock.io/v1alpha1): what an administrator wants of the accelerators of
// a whole cluster. Resources of other operators are translated into it (api/compat); NodeConfig and
// the objects of the cluster follow from it.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/cluster/driver.h"
#include "api/cluster/kube_part.h"
#include "api/config/node_config.h"
#include "base/core/result.h"

namespace penstock::api {

/// How a changed agent replaces the one before it.
struct AgentUpdate {
  bool on_delete = false;       ///< only where its pod is deleted
  std::string max_unavailable;  ///< "1", "25%": nodes without an agent at the same time; empty: the
                                ///< new pod starts beside the old one and takes over
  bool operator==(const AgentUpdate&) const = default;
};

/// The agents' pods.
struct AgentPods {
  std::string image;        ///< empty: the operator's own image
  std::string pull_policy;  ///< empty: IfNotPresent
  std::vector<std::string> pull_secrets;
  std::map<std::string, std::string> labels, annotations;  ///< added to the agent's own
  std::map<std::string, std::string> node_selector;
  KubeJson tolerations;             ///< a list
  KubeJson affinity;                ///< a map
  KubeJson resources;               ///< of the container; empty: the operator's default
  KubeJson pod_security_context;    ///< a map
  KubeJson volumes, volume_mounts;  ///< lists; added to the agent's own
  std::vector<std::pair<std::string, std::string>> environment;
  std::string priority_class;
  bool host_network = false;
  AgentUpdate update;
  bool operator==(const AgentPods&) const = default;
};

/// Where the host has what the agents' pods mount.
struct HostPaths {
  std::string driver_root = "/run/nvidia/driver";  ///< of a driver container; a driver of the host
                                                   ///< itself is found without this
  std::string kubelet_dir = "/var/lib/kubelet";    ///< its --root-dir
  /// The same under every --root-dir: a constant of the kubelet (deviceplugin/v1beta1).
  std::string device_plugins_dir = "/var/lib/kubelet/device-plugins";
  std::string install_dir;  ///< folder for the programs that container engines execute; empty: the
                            ///< agent's state folder
  /// Mount the folders in which exporters of vendors serve the health of devices to their device
  /// plugins, so that the agents can.
  bool health_sockets = false;
  bool operator==(const HostPaths&) const = default;
};

/// ConfigMaps in the operator's namespace; an empty name: there is none.
struct NamedConfigMaps {
  std::string configurations;  ///< a configuration for each kind of node
  std::string default_configuration;
  std::string layouts;          ///< a file of mig-parted under "config.yaml"
  std::string counters;         ///< a file of counters under "dcgm-metrics.csv"
  std::string exporter;         ///< the configuration of AMD's exporter under "config.json"
  std::string mode_profiles;    ///< profiles of AMD's Device Config Manager under "config.json"
  std::string client_services;  ///< services of the host that are stopped for a division under
                                ///< "clients.yaml"
  bool operator==(const NamedConfigMaps&) const = default;
};

/// A Service or a ServiceMonitor that selects the agents' metrics page.
struct MetricsService {
  std::string name;  ///< "nvidia-dcgm-exporter"
  int port = 9400;
  std::string port_name = {};  ///< of a vendor's object; empty: compat::PortName
  std::string type = "ClusterIP";
  int node_port = 0;  ///< of the type NodePort; 0: the server chooses one
  std::string internal_traffic_policy, external_traffic_policy;  ///< "Cluster", "Local"; empty: not
                                                                 ///< set
  std::map<std::string, std::string> labels, annotations;
  bool monitor = false;  ///< with a ServiceMonitor, where the cluster has this kind
  std::string interval, scrape_timeout;
  bool honor_labels = false;
  std::map<std::string, std::string> monitor_labels;
  KubeJson relabelings, metric_relabelings;  ///< lists
  bool operator==(const MetricsService&) const = default;
};

/// A RuntimeClass that others select.
struct RuntimeClassSpec {
  std::string name, handler;
  bool operator==(const RuntimeClassSpec&) const = default;
};

/// What the nodes get besides what their agents write.
struct NodeMarks {
  /// Labels by which users switch services of the agent off node by node, and other programs find
  /// their nodes: key → value that is written where the node has none.
  std::map<std::string, std::string> labels;
  std::map<std::string, std::string> annotations;
  /// "true" or "false" on each node of the cluster: whether it has a device of the vendor.
  std::string present_label;
  /// With the value "false" on a node, none of `labels` is written there, and its agent serves
  /// nothing.
  std::string opt_out_label;
  bool operator==(const NodeMarks&) const = default;
};

struct PenstockSpec {
  AgentPods agent;
  HostPaths host;
  /// Each node's configuration. What the pod's mounts determine (paths) is set by the operator.
  NodeConfig node;
  NamedConfigMaps config_maps;
  std::vector<RuntimeClassSpec> runtime_classes;
  std::vector<MetricsService> services;
  NodeMarks marks;
  /// Keys of taints with which nodes register to keep pods away until their devices can be used:
  /// then they are removed.
  std::vector<std::string> startup_taints = {"penstock.io/accelerators-not-ready"};
  /// Drivers that run as containers; each node has the one that selects it.
  std::vector<DriverSpec> drivers;
  bool privileged_namespace = false;  ///< label the operator's namespace for privileged pods
};

/// Reads a Penstock object (JSON) over `base`: what the object does not set is as there, so that an
/// administrator can add to a translated resource what that cannot say. kInvalidArgument: all
/// problems at once, each with its path. Remarks: what is deprecated or has no effect.
base::Result<PenstockSpec> ParsePenstock(std::string_view object, std::string_view where,
                                         const ConfigTerms& terms = {},
                                         const PenstockSpec& base = {},
                                         std::vector<std::string>* remarks = nullptr);

/// The object's spec as JSON, for `penstock`'s output and for tests.
std::string ToJson(const PenstockSpec& spec);

}  // namespace penstock::api
