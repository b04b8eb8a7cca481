// Analysis of `penstock migrate`: what changes when Penstock replaces NVIDIA's device plugin stack
// and ROCm's programs (migrate/amd), or NVIDIA's stack replaces Penstock. Changes nothing. Pure,
// except for FilesOfTheStack, which reads the file system.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "analysis/objects.h"
#include "api/compat/nvidia/device_plugin.h"

namespace penstock::analysis {

/// The role of a workload in the stack.
enum class Part {
  kDevicePlugin,
  kFeatureDiscovery,
  kMps,
  kExporter,
  kHostEngine,
  kToolkit,
  kMigManager,
  kNodeFeatureDiscovery,
  kPenstock,
  kRocmPlugin,
  kRocmLabeller,
  kRocmExporter,
  kRocmConfigManager
};
std::string_view ToString(Part part);

/// One DaemonSet, or the DaemonSet that a values file will create.
struct Workload {
  Part part = Part::kDevicePlugin;
  std::string kind, name, namespace_name;
  std::string from;                        ///< "DaemonSet kube-system/nvdp", "values nvdp.yaml"
  std::string release, release_namespace;  ///< of Helm
  std::string chart;                       ///< "nvidia-device-plugin-0.17.1"
  std::string policy;                      ///< the ClusterPolicy that owns it
  std::string device_config;               ///< the DeviceConfig of AMD's operator that owns it
  std::vector<api::compat::Given>
      given;  ///< settings by flag and environment, under their primary names
  std::vector<std::string> unknown;     ///< flags that are not in the plugin's own table
  std::string config_map, default_key;  ///< what its config-manager reads; of the MIG manager:
                                        ///< the layouts; of ROCm's programs: with config.json
  std::vector<std::string> fallbacks;   ///< tried where neither the label nor the default names a
                                        ///< key
  std::string image;
  std::map<std::string, std::string> labels,
      selects;                         ///< of its pods; of the nodes that it runs on
  std::string counters_map, counters;  ///< of the exporter: the ConfigMap with its counters file,
                                       ///< or the path of that file in its image
  std::string job_directory;           ///< of the exporter, as the host sees it
};

/// A configuration file of the device plugin.
struct ConfigFile {
  std::string from;  ///< "ConfigMap gpu-operator/time-slicing-config, key any"
  std::string config_map, namespace_name, key;
  std::string text;
};

/// A ConfigMap with all its keys, or the map of a values file.
struct ConfigMap {
  std::string name, namespace_name;
  std::map<std::string, std::string> data;
};

/// A pod, or an object that creates pods.
struct GpuConsumer {
  std::string name;                            ///< "Pod gpu-jobs/train-0"
  std::string node;                            ///< empty: not scheduled
  std::set<std::string> resources;             ///< the vendors' resources that it requests
  std::map<std::string, std::string> selects;  ///< the vendors' labels of its nodeSelector
  std::string runtime_class;
  std::string visible_devices;  ///< NVIDIA_VISIBLE_DEVICES, where set in its own environment
};

/// A Service, or an object that makes Prometheus scrape the pods or Services with certain labels.
struct Endpoint {
  std::string kind, name, namespace_name;
  std::map<std::string, std::string> labels, selects;
  std::string job_label;  ///< the label of the scraped object whose value becomes the job's name
};

/// An object that queries series: a rule, a dashboard, an autoscaler.
struct Query {
  std::string name;  ///< "PrometheusRule monitoring/gpus"
  std::string text;  ///< all its queries, one per line
};

struct RuntimeClass {
  std::string name, handler;
};

/// The configuration of a GPU Operator: its ClusterPolicy, or the values of its chart.
struct Policy {
  std::string name, config_map, default_key, mig_strategy;
  std::string layouts_map, default_layout, gpu_clients_map;  ///< of the MIG manager
  std::string release, release_namespace;                    ///< of Helm; empty: not known
  std::string values_file;         ///< instead of an object: the values of its chart
  std::vector<Workload> operands;  ///< the workloads that it will create: the device plugin, the
                                   ///< exporter
};

struct LabelledNode {
  std::string name;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::int64_t> capacity;
  std::set<std::string> taints;  ///< their keys
};

/// A DeviceConfig of AMD's GPU Operator.
struct DeviceConfigName {
  std::string namespace_name, name;
};

/// Everything that was found.
struct Found {
  std::vector<Workload> workloads;
  std::vector<ConfigFile> configs;
  std::vector<ConfigMap> config_maps;
  std::vector<ConfigFile> counters;  ///< counters files of the exporter
  std::vector<ConfigFile> layouts;   ///< files of mig-parted
  std::vector<GpuConsumer> consumers;
  std::vector<Endpoint> endpoints;
  std::vector<Query> queries;
  std::vector<RuntimeClass> runtime_classes;
  std::vector<Policy> policies;
  std::vector<DeviceConfigName> device_configs;
  std::vector<LabelledNode> nodes;
  std::vector<std::string> node_features;  ///< "namespace/name" of GPU Feature Discovery's objects
  std::vector<std::string> files;          ///< of this machine
  std::vector<std::string> remarks;        ///< what could not be read, and why
  std::vector<std::string> problems;       ///< inputs that are not what they should be
};

/// The workloads with one of these roles, in the order in which they were found.
std::vector<const Workload*> WorkloadsOf(const Found& found, std::initializer_list<Part> parts);

/// Adds an object of a cluster or of a manifest to `found`: DaemonSet, ConfigMap, ClusterPolicy,
/// DeviceConfig, Node, NodeFeature, List, and the kinds of TakeConsumer and TakeMonitoring. Ignores
/// other kinds.
void TakeObject(const nlohmann::json& object, Found& found);

/// Adds what a pod, or an object that creates pods, uses of the vendors' programs. Adds nothing
/// where it uses nothing.
void TakeConsumer(const nlohmann::json& object, Found& found);
bool IsConsumerKind(const std::string& kind);

/// `spec`: of a ClusterPolicy, or chart values with the same keys; `from`: its description for
/// users.
Policy PolicyOf(const nlohmann::json& spec, const std::string& name, const std::string& from);

/// Adds Services, monitors, rules, dashboards, autoscalers, counters files and RuntimeClasses.
/// Returns false for other objects.
bool TakeMonitoring(const nlohmann::json& object, Found& found);

/// Copies the settings of dcgm-exporter's container to its workload.
void TakeExporter(const nlohmann::json& pod, const nlohmann::json& container, Workload& workload);

/// Adds the objects of a file: YAML or JSON, several documents. Chart values and plugin
/// configurations are recognised by their keys.
base::Status TakeFile(std::string_view text, const std::string& file, Found& found);

/// Returns the files and sockets of NVIDIA's stack and ROCm's programs on this machine, below
/// `root` ("" in production).
std::vector<std::string> FilesOfTheStack(const std::string& root);

enum class Direction { kToPenstock, kToNvidia };

struct PlannedChange {
  std::string what, now, then;
  int nodes = 0;  ///< how many nodes it affects; 0: not counted
  std::string note;
};

inline constexpr char kNvidiaDomain[] = "nvidia.com/",  ///< of labels and resources
    kAmdDomain[] = "amd.com/", kOldAmdDomain[] = "beta.amd.com/";

struct Step {
  std::string command, why;
};

struct Migration {
  Direction direction = Direction::kToPenstock;
  std::string from = "NVIDIA's stack";  ///< what Penstock replaces, or what replaces Penstock
  std::vector<std::string> found;
  std::vector<PlannedChange> resources, labels, metrics, objects,
      files;  ///< objects: jobs, Services, RuntimeClasses
  std::vector<std::string>
      lost;  ///< what shrinks or disappears, with the pods and queries that use it
  std::vector<std::string> not_yet, remarks, problems;
  std::vector<Step> steps;
  bool as_nvidia = false;       ///< devicePlugin.configFiles: as-nvidia preserves something
  std::string host_label, job;  ///< telemetry.hostLabel and the job's name that keep queries
                                ///< working; empty: not needed
};

/// Computes the plan for `node`; empty: for all nodes.
Migration Plan(const Found& found, Direction direction, const std::string& node);

}  // namespace penstock::analysis
