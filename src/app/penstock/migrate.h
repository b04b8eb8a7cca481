// `penstock migrate`: what changes when Penstock takes over from NVIDIA's device plugin stack, or gives back to it. Reads; changes nothing.
// Pure, but for the verb.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "api/compat/device_plugin.h"
#include "app/penstock/cluster.h"
#include "app/penstock/table.h"
#include "app/penstock/verbs.h"

namespace penstock::app {

/// What a workload does in the stack.
enum class Part { kDevicePlugin, kFeatureDiscovery, kMps, kExporter, kHostEngine, kToolkit, kNodeFeatureDiscovery, kPenstock };
std::string_view ToString(Part part);

/// One DaemonSet (or what a values file will make one).
struct Workload {
  Part part = Part::kDevicePlugin;
  std::string kind, name, namespace_name;
  std::string from;                        ///< "DaemonSet kube-system/nvdp", "values nvdp.yaml"
  std::string release, release_namespace;  ///< of Helm
  std::string chart;                       ///< "nvidia-device-plugin-0.17.1"
  std::string policy;                      ///< the ClusterPolicy that owns it
  std::vector<api::compat::Given> given;   ///< settings by flag and environment, under their first names
  std::vector<std::string> unknown;        ///< flags that the plugin's own table lacks
  std::string config_map, default_key;     ///< what its config-manager reads
  std::vector<std::string> fallbacks;      ///< and tries where neither label nor default names a key
  std::string image;
  std::map<std::string, std::string> labels, selects;  ///< of its pods; of the nodes that it runs on
  std::string counters_map, counters;  ///< of the exporter: the ConfigMap that has its file of counters, or that file's path in its image
};

/// A configuration file of the plugin's.
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

/// A pod, or what makes pods.
struct Consumer {
  std::string name;                            ///< "Pod gpu-jobs/train-0"
  std::string node;                            ///< empty: none yet
  std::set<std::string> resources;             ///< of nvidia.com that it asks for
  std::map<std::string, std::string> selects;  ///< nvidia.com labels of its nodeSelector
  std::string runtime_class;
  std::string visible_devices;  ///< NVIDIA_VISIBLE_DEVICES, where its own environment says it
};

/// A Service, or what makes Prometheus scrape the pods or the Services with some labels.
struct Endpoint {
  std::string kind, name, namespace_name;
  std::map<std::string, std::string> labels, selects;
  std::string job_label;  ///< whose value on what is scraped is the job's name
};

/// What asks for series: a rule, a dashboard, an autoscaler.
struct Query {
  std::string name;  ///< "PrometheusRule monitoring/gpus"
  std::string text;  ///< all its queries, a line each
};

struct RuntimeClass {
  std::string name, handler;
};

/// What configures a GPU Operator: its ClusterPolicy, or the values of its chart.
struct Policy {
  std::string name, config_map, default_key, mig_strategy;
  std::vector<Workload> operands;  ///< that it will make: the device plugin, the exporter
};

struct LabelledNode {
  std::string name;
  std::map<std::string, std::string> labels;
  std::map<std::string, std::int64_t> capacity;
};

/// All that was found.
struct Found {
  std::vector<Workload> workloads;
  std::vector<ConfigFile> configs;
  std::vector<ConfigMap> config_maps;
  std::vector<ConfigFile> counters;  ///< files of the exporter
  std::vector<Consumer> consumers;
  std::vector<Endpoint> endpoints;
  std::vector<Query> queries;
  std::vector<RuntimeClass> runtime_classes;
  std::vector<Policy> policies;
  std::vector<LabelledNode> nodes;
  std::vector<std::string> node_features;  ///< "namespace/name" of GPU Feature Discovery's
  std::vector<std::string> files;          ///< of this machine
  std::vector<std::string> remarks;        ///< what could not be read, and why
  std::vector<std::string> problems;       ///< what was given and is not what it should be
};

/// Those that do one of these, in the order in which they were found.
std::vector<const Workload*> WorkloadsOf(const Found& found, std::initializer_list<Part> parts);

/// Takes in an object of a cluster (or of a manifest): DaemonSet, ConfigMap, ClusterPolicy, Node, NodeFeature, List, and those of
/// TakeConsumer and TakeMonitoring; others are passed over.
void TakeObject(const nlohmann::json& object, Found& found);

/// Of a pod, or of a kind that makes pods, what it uses of NVIDIA's stack; nothing where it uses nothing.
void TakeConsumer(const nlohmann::json& object, Found& found);
bool IsConsumerKind(const std::string& kind);

/// `spec`: of a ClusterPolicy, or what values have under the same keys; `from`: for people.
Policy PolicyOf(const nlohmann::json& spec, const std::string& name, const std::string& from);

/// Services, monitors, rules, dashboards, autoscalers, files of counters, RuntimeClasses; false where it is none of these.
bool TakeMonitoring(const nlohmann::json& object, Found& found);

/// The settings of dcgm-exporter's container into its workload.
void TakeExporter(const nlohmann::json& pod, const nlohmann::json& container, Workload& workload);

/// The objects of a file: YAML or JSON, several documents; a chart's values and a configuration of the plugin are known by their keys.
base::Status TakeFile(std::string_view text, const std::string& file, Found& found);

/// Files and sockets of NVIDIA's stack on this machine, below `root` ("" in production).
std::vector<std::string> FilesOfTheStack(const std::string& root);

enum class Direction { kToPenstock, kToNvidia };

struct Change {
  std::string what, now, then;
  int nodes = 0;  ///< how many it concerns; 0: not counted
  std::string note;
};

struct Step {
  std::string command, why;
};

struct Migration {
  Direction direction = Direction::kToPenstock;
  std::vector<std::string> found;
  std::vector<Change> resources, labels, metrics, objects, files;  ///< objects: jobs, Services, RuntimeClasses
  std::vector<std::string> lost;                                   ///< what becomes less or goes, with the pods and queries that use it
  std::vector<std::string> not_yet, remarks, problems;
  std::vector<Step> steps;
  bool as_nvidia = false;       ///< devicePlugin.configFiles: as-nvidia keeps something as it is
  std::string host_label, job;  ///< telemetry.hostLabel and the job's name that keep queries as they are; empty: nothing to keep
};

/// `node`: only this one; empty: all.
Migration Plan(const Found& found, Direction direction, const std::string& node);

std::string ShowMigration(const Migration& migration, const Style& style);
std::string MigrationToJson(const Migration& migration);

/// Adds the verb.
void AddMigrate(CLI::App& app, const Common& common, int& exit_code);

}  // namespace penstock::app
