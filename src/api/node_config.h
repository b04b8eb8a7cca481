// NodeConfig: everything that can be said to an agent, in one document. Other people's files are translated into it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/quantity.h"
#include "base/core/result.h"

namespace penstock::api {

/// Where things lie, as the program itself sees them. Defaults are a plain machine's.
struct PathsConfig {
  std::string driver_root = "/";
  std::string nvml_library;  ///< not relative to the driver root; empty: found in it
  std::string sysfs_root = "/sys";
  std::string dev_root;  ///< the folder that holds dev/, or a /dev itself; empty: the driver root
  std::string proc_root = "/proc";
  std::string os_release = "/etc/os-release";  ///< the machine's own, which in a container lies elsewhere
  std::string cdi_root = "/var/run/cdi";
  std::string kubelet_dir = "/var/lib/kubelet";
  std::string state_dir = "/var/lib/penstock";
  std::string run_dir = "/run/penstock";
  std::string host_driver_root;  ///< driver_root as the host calls it, where that differs (in a container); empty: driver_root
  std::string host_dev_root;     ///< dev_root as the host calls it: what Allocate answers; empty: host_driver_root, else dev_root
};

/// Which door some devices belong to; the first rule that matches a device counts.
struct DoorRule {
  std::vector<std::string> devices;  ///< ids, indices or globs over the model; empty: all
  std::string door;                  ///< "kubelet", "local", "none"
};

enum class Switch { kAuto, kOn, kOff };

/// Under which resource name whole devices of some models are offered; the first rule that matches a device counts.
struct ResourceRule {
  std::string pattern;  ///< glob over the model's name
  std::string name;     ///< "nvidia.com/a100"
  bool operator==(const ResourceRule&) const = default;
};

enum class ShareStrategy { kNone, kTimeSlicing, kMps };

/// How some devices are shared; the first rule that matches a device counts. Without a rule a device is not shared.
struct SharingRule {
  std::string resource;              ///< those that would be offered whole under this name; empty: any
  std::vector<std::string> devices;  ///< ids, indices or globs over the model; empty: all
  int most = 0;                      ///< only so many of those that match, the first by index; 0: all
  ShareStrategy strategy = ShareStrategy::kNone;
  int replicas = 1;    ///< 1: not shared
  std::string rename;  ///< the resource's name for the shares; empty: as it is
  bool fail_requests_greater_than_one = false;
  bool operator==(const SharingRule&) const = default;
};

/// Which share the kubelet is advised to take: of the device with the fewest that are taken, or with the most.
enum class SharePolicy { kDistributed, kPacked };

struct SharingConfig {
  std::vector<SharingRule> rules;
  SharePolicy policy = SharePolicy::kDistributed;
  std::string mps_root = "/run/nvidia/mps";  ///< folder of MPS' pipes and logs, as the program itself sees it
  std::string host_mps_root;                 ///< as the host calls it, where that differs (in a container); empty: mps_root
  bool operator==(const SharingConfig&) const = default;
};

/// What a site wants done about an error, other than the vendor's documentation says; the last rule that matches counts.
struct HealthRule {
  std::string kind = "xid";         ///< family of codes, as in metrics and status
  std::vector<std::int64_t> codes;  ///< empty: all
  /// "default", "ignore", "warn", "drain", "reset", "gone"; "at-least-drain": drain, where the default is milder, else the default.
  std::string action;
  bool operator==(const HealthRule&) const = default;
};

/// Whether the agent resets a device that needs it: never, or when nobody holds it and nobody is on it.
enum class ResetPolicy { kNever, kIdle };

struct HealthConfig {
  base::Duration poll = std::chrono::seconds(5);             ///< between two looks at a device
  base::Duration probation = std::chrono::seconds(10);       ///< how long a device must look well before it is used again
  base::Duration probation_most = std::chrono::minutes(10);  ///< each relapse doubles the probation, up to this
  std::vector<HealthRule> policy;
  ResetPolicy reset = ResetPolicy::kNever;
  bool operator==(const HealthConfig&) const = default;
};

/// How an allocation names its devices to the container.
enum class DeviceIds { kUuid, kIndex };

/// What counts of what NVIDIA's device plugin reads in its files and then ignores: resources, and in sharing rename and devices.
enum class PluginFiles {
  kExtended,  ///< all of it
  kAsNvidia,  ///< nothing, as there
};

/// How a container of the kubelet's door is told its devices: NVIDIA's deviceListStrategy.
enum class DeviceList { kEnvvar, kVolumeMounts, kCdiAnnotations, kCdiCri };

/// What the agent writes into the configuration of the kubelet's engine.
enum class EngineSetup {
  kOff,      ///< nothing
  kCdi,      ///< that it injects CDI devices, where it does not
  kRuntime,  ///< that, and penstock-runtime under the name "nvidia"
};

struct ContainersConfig {
  std::vector<DeviceList> device_list;  ///< all of these; empty: what this node's engine can do, which is asked
  Switch device_files = Switch::kAuto;  ///< the kubelet is given device files too; auto: where the engine does not inject them by CDI
  std::string cdi_annotation_prefix = "cdi.k8s.io/";
  EngineSetup configure_engine = EngineSetup::kOff;
  std::string engine_socket;  ///< of the kubelet's container engine; empty: the one that the kubelet uses
  /// Devices of other classes that every container gets with its own, where they are on this node: "gds", "imex=0".
  std::vector<std::string> device_classes;
  std::vector<std::string> required_classes;  ///< of those; while one of them is not there, nothing is offered to the kubelet
  bool operator==(const ContainersConfig&) const = default;
};

/// The CDI specifications that the agent writes to paths.cdi_root.
struct CdiConfig {
  Switch enabled = Switch::kAuto;  ///< auto: where the agent may write there
  std::string hook;                ///< the hook program as the host calls it; empty: penstock-hook beside this program
  std::string install;             ///< folder that the hook and the runtime are copied to, as this program sees it; empty: they are not
  std::string host_install;        ///< as the host calls it; empty: the same
  std::vector<std::string> disable_hooks;  ///< of HookNames(), left out of specifications; "all"
  std::vector<std::string> enable_hooks;   ///< of HookNames(), those that are off by default
  bool additional_gids = false;            ///< containers are in the groups of device files that not everybody may open
  bool operator==(const CdiConfig&) const = default;
};

/// Which labels the node gets, and on which ways they leave.
struct LabelsConfig {
  Switch node = Switch::kAuto;           ///< straight on the Node object; auto: in a cluster
  Switch node_feature = Switch::kOff;    ///< as NFD's NodeFeature object; auto: where its CRD is installed
  std::string features_file;             ///< as a file of NFD's features.d; empty: none
  Switch host_features = Switch::kAuto;  ///< feature.node.kubernetes.io/*; auto: where no NFD labels this node
  bool timestamp = true;                 ///< nvidia.com/gfd.timestamp
  std::string machine_type_file = "/sys/class/dmi/id/product_name";
  bool operator==(const LabelsConfig&) const = default;
};

/// Where a ConfigMap with a configuration for each kind of node is, and which of its keys counts when the node's label names none.
struct ConfigMapConfig {
  std::string name;  ///< empty: there is none
  std::string namespace_name;
  std::string default_key;
  std::vector<std::string> fallbacks = {"named", "single"};  ///< "named", "single", "empty", tried in this order
  std::string node_label = "nvidia.com/device-plugin.config";
  bool operator==(const ConfigMapConfig&) const = default;
};

/// What the agent has to do with an API server.
struct ClusterConfig {
  Switch enabled = Switch::kAuto;     ///< auto: in a pod, or where a kubeconfig is named
  std::string kubeconfig;             ///< empty: in-cluster
  std::string namespace_name;         ///< of events and NodeFeature objects; empty: the pod's own, else "default"
  Switch node_state = Switch::kAuto;  ///< the node's penstock.io object; auto: where its CRD is installed
  Switch events = Switch::kOn;        ///< Events on the Node
  Switch node_status = Switch::kOn;   ///< one patch of nodes/status after the kubelet has the list
  ConfigMapConfig config_map;
  bool operator==(const ClusterConfig&) const = default;
};

/// Under which names values are shown. Several at once are several families for one value.
enum class MetricNames {
  kAccelerator,  ///< "accelerator": ours, one schema for all vendors
  kExporter,     ///< "dcgm": as the vendors' own exporters have them
  kExporterNew,  ///< "dcgm-4.7": the newer naming of NVIDIA's, with its units
};

/// A row of a vendor exporter's file of counters.
struct MetricRow {
  std::string field;  ///< "DCGM_FI_DEV_GPU_UTIL"
  std::string type;   ///< "gauge", "counter", "label"
  std::string help;
  bool operator==(const MetricRow&) const = default;
};

/// The host's label on an exporter's series; dcgm-exporter had it as "Hostname" before 4.8.3.
enum class HostLabel { kNone, kOld, kNew, kBoth };

struct TelemetryConfig {
  base::Duration interval = std::chrono::seconds(10);  ///< between two collections
  std::vector<MetricNames> names = {MetricNames::kExporter, MetricNames::kAccelerator};
  bool names_said = false;  ///< `names` were asked for, and are not the default
  bool processes = true;    ///< what each process uses
  /// Globs over names of families: what is left out, and what is shown although a glob leaves it out.
  std::vector<std::string> exclude, include;

  // Of the exporters' names.
  std::vector<MetricRow> counters;  ///< what is shown; empty: the file, and without one what the exporter shows by default
  std::string counters_file;        ///< dcgm-exporter's CSV; followed while the agent runs, which has its rows in `counters`
  std::string counters_map;         ///< "namespace:name" of a ConfigMap with such a CSV under "metrics"; counts more than the file
  HostLabel host_label = HostLabel::kNew;
  bool old_names = false;        ///< labels as before the exporter's renaming: "uuid", "pod_name"
  bool blanks_replaced = false;  ///< no blanks in models' names
  bool holders = true;           ///< device series say which pod holds the device
  /// Of a shared device: each family a series for each holder, as KUBERNETES_VIRTUAL_GPUS has it (on); none says a holder (off); a series
  /// for each pod where the pod's own value is known, else one that says none (auto).
  Switch virtual_gpus = Switch::kAuto;
  bool pod_uid = false;
  base::Duration xid_window = std::chrono::minutes(5);
  base::Duration clock_events_window = std::chrono::minutes(5);

  /// Globs over keys of holders' labels (a pod's, or what `penstock run --label` gave) that series and usage records carry; empty: none.
  std::vector<std::string> holder_labels;
  base::Duration keep_ended = std::chrono::minutes(5);  ///< how long a holder that has ended is still shown
  bool operator==(const TelemetryConfig&) const = default;
};

/// Records of who used what.
struct UsageConfig {
  bool records = true;
  std::string dir;                                       ///< empty: "usage" in paths.stateDir
  base::Bytes file_size = base::Mebibytes(16);           ///< a file that is larger is followed by the next
  int files = 16;                                        ///< that are kept
  base::Duration checkpoint = std::chrono::minutes(15);  ///< a record of each running holder is written so often
  base::Duration idle_after = std::chrono::minutes(30);  ///< held and unused for so long is idle
  double idle_below = 0.01;                              ///< utilization, 0 to 1, that still counts as unused
  bool operator==(const UsageConfig&) const = default;
};

struct HttpConfig {
  std::string listen = "127.0.0.1:9400";  ///< host:port, unix:PATH, systemd:NAME, or "off"
  std::string web_config_file;            ///< Prometheus' web configuration: TLS, users; followed while the agent runs; empty: neither
  int connections = 64;
  base::Duration deadline = std::chrono::seconds(5);  ///< for a whole connection
  bool operator==(const HttpConfig&) const = default;
};

/// What one user may have of the queue for devices while others wait in it too; 0: no limit.
struct QueueConfig {
  int gpus = 0;                                  ///< devices held; what is asked for beyond them is served after all others
  int waiting = 0;                               ///< requests that wait; further ones are refused
  base::Duration time = base::Duration::zero();  ///< how long a run is safe from being ended for somebody who waits
  bool operator==(const QueueConfig&) const = default;
};

struct NodeConfig {
  PathsConfig paths;
  std::string node_name;  ///< empty: the host's name

  Switch kubelet_door = Switch::kAuto;   ///< auto: where the kubelet's directory exists
  Switch local_door = Switch::kAuto;     ///< auto: on
  std::string local_group = "penstock";  ///< members may use the local door; where no such group exists, root only
  /// Control groups of the machine ("/user.slice") whose processes can open devices only where they hold them; empty: none.
  std::vector<std::string> closed_cgroups;
  std::vector<DoorRule> doors;  ///< before the default: the kubelet's door where it is open, else the local one
  QueueConfig queue;

  HealthConfig health;

  std::vector<ResourceRule> resources;  ///< before the default, the vendor's one name for all
  bool resource_per_model = false;      ///< the default is a name for each model
  SharingConfig sharing;

  HttpConfig http;
  TelemetryConfig telemetry;
  UsageConfig usage;

  DeviceIds device_ids = DeviceIds::kUuid;
  PluginFiles plugin_files = PluginFiles::kExtended;
  ContainersConfig containers;
  CdiConfig cdi;
  LabelsConfig labels;
  ClusterConfig cluster;
  bool restrict_workers = false;  ///< processes that hold a driver's library make no system call that administers the machine
};

/// Reads and checks a whole document (YAML; JSON is YAML). Everything wrong at once, with file:line:column and a hint (kInvalidArgument).
base::Result<NodeConfig> ParseNodeConfig(std::string_view text, std::string_view file);

/// The values as a document that ParseNodeConfig reads back, with every key there is: what `penstock config show` prints.
std::string ToYaml(const NodeConfig& config);

/// A path that can be set by a flag of the same name and a key below `paths`.
struct PathOption {
  std::string_view flag;  ///< "--driver-root"
  std::string_view key;   ///< "driverRoot"
  std::string PathsConfig::*member;
  std::string_view help;
};
const std::vector<PathOption>& PathOptions();

/// "envvar", "volume-mounts", "cdi-annotations", "cdi-cri".
std::string_view ToString(DeviceList strategy);
std::string_view ToString(EngineSetup setup);  ///< "off", "cdi", "runtime"

/// What the hook program can be asked to do by a specification: "create-symlinks". The names are those of NVIDIA's nvidia-cdi-hook
/// (cmd/nvidia-cdi-hook/commands).
const std::vector<std::string>& HookNames();

/// What a running agent needs restarted for, or cannot do: checks that need more than one key (paths that contradict each other).
base::Status Validate(const NodeConfig& config);

}  // namespace penstock::api
