// NodeConfig: all settings of an agent, in one document. The configuration files of other programs
// are translated into it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "api/config/config_terms.h"
#include "base/core/clock.h"
#include "base/core/quantity.h"
#include "base/core/result.h"

namespace penstock::api {

/// Values that each vendor has for itself, by its name.
using ByVendor = std::map<std::string, std::string, std::less<>>;

/// The value of a vendor; empty if there is none.
inline std::string OfVendor(const ByVendor& values, std::string_view vendor) {
  const auto found = values.find(vendor);
  return found == values.end() ? "" : found->second;
}

/// Paths as the program itself sees them. The defaults are those of a machine without containers.
struct PathsConfig {
  std::string driver_root = "/";
  ByVendor libraries;  ///< of the drivers; not relative to the driver root; without one: searched
                       ///< in the driver root
  std::string sysfs_root = "/sys";
  std::string dev_root;  ///< the folder that contains dev/, or a /dev itself; empty: the driver
                         ///< root
  std::string proc_root = "/proc";
  std::string os_release =
      "/etc/os-release";  ///< the machine's own file, which is elsewhere in a container
  std::string cdi_root = "/var/run/cdi";
  std::string kubelet_dir = "/var/lib/kubelet";
  std::string state_dir = "/var/lib/penstock";
  std::string run_dir = "/run/penstock";
  std::string host_driver_root;  ///< driver_root as the host sees it, where that differs (in a
                                 ///< container); empty: driver_root
  std::string host_dev_root;     ///< dev_root as the host sees it, used in answers to Allocate;
                                 ///< empty: host_driver_root, else dev_root
  std::string driver_container_root;  ///< below the driver root: where a driver container puts its
                                      ///< root; empty: it is not looked for
};

/// Assigns some devices to an allocator; the first rule that matches a device applies.
struct AssignmentRule {
  std::vector<std::string> devices;  ///< ids, indices or globs for the model's name; empty: all
  std::string allocator;             ///< one of AllocatorWords
};

enum class Switch { kAuto, kOn, kOff };

/// `automatic`: what auto means here.
constexpr bool IsOn(Switch setting, bool automatic) {
  return setting == Switch::kOn || (setting == Switch::kAuto && automatic);
}

/// The resource name under which whole devices of some models are offered; the first rule that
/// matches a device applies.
struct ResourceRule {
  std::string pattern;  ///< glob for the model's name
  std::string name;     ///< "nvidia.com/a100"
  bool operator==(const ResourceRule&) const = default;
};

/// Under which resource names the parts of divided devices are offered.
enum class PartsStrategy {
  kDefault,  ///< as the vendor's users know it
  kNone,     ///< not at all
  kSingle,   ///< under the name of whole devices; those of one profile only, so that every request
             ///< gets the same
  kMixed,    ///< under a name for each profile
};

enum class ShareStrategy { kNone, kTimeSlicing, kServer };

/// Of one device; users request one for each MiB.
inline constexpr int kMaxReplicas = 100'000;

/// How some devices are shared; the first rule that matches a device applies. A device without a
/// rule is not shared.
struct SharingRule {
  std::string resource;  ///< only devices that would be offered whole under this name; empty: any
  std::vector<std::string> devices;  ///< ids, indices or globs for the model's name; empty: all
  int most = 0;  ///< only this many of the matching devices, the first by index; 0: all
  ShareStrategy strategy = ShareStrategy::kNone;
  int replicas = 1;    ///< 1: not shared
  std::string rename;  ///< the resource name of the shares; empty: unchanged
  bool fail_requests_greater_than_one = false;
  bool operator==(const SharingRule&) const = default;
};

/// Which share the kubelet is advised to take: on the device with the fewest shares taken, or with
/// the most.
enum class SharePolicy { kDistributed, kPacked };

struct SharingConfig {
  std::vector<SharingRule> rules;
  SharePolicy policy = SharePolicy::kDistributed;
  /// Folders of the pipes and logs of sharing servers, as the program itself sees them; without
  /// one: device::Dialect::server_root.
  ByVendor server_roots;
  /// The same as the host sees them, where that differs (in a container).
  ByVendor host_server_roots;
  bool operator==(const SharingConfig&) const = default;
};

/// The site's action for an error, instead of the one that the vendor's documentation recommends;
/// the last rule that matches applies.
struct HealthRule {
  std::string kind;                 ///< family of codes, as in metrics and status
  std::vector<std::int64_t> codes;  ///< empty: all
  /// "default", "ignore", "warn", "drain", "reset", "gone"; "at-least-drain": drain where the
  /// default is milder, else the default.
  std::string action;
  bool operator==(const HealthRule&) const = default;
};

/// Whether the agent resets a device that needs it, or loads a driver again: never, or when no
/// device that this concerns has a holder, and no process uses it.
enum class ResetPolicy { kNever, kIdle };

struct HealthConfig {
  base::Duration poll = std::chrono::seconds(5);             ///< between two polls of a device
  base::Duration probation = std::chrono::seconds(10);       ///< how long a device must be without
                                                             ///< faults before it is used again
  base::Duration probation_most = std::chrono::minutes(10);  ///< each relapse doubles the
                                                             ///< probation, up to this limit
  std::vector<HealthRule> policy;
  ResetPolicy reset = ResetPolicy::kNever;
  bool operator==(const HealthConfig&) const = default;
};

/// How an allocation identifies its devices to the container.
enum class DeviceIds { kUuid, kIndex };

/// Whether settings that NVIDIA's device plugin reads from its files and then ignores take effect:
/// `resources`, and `rename` and `devices` in `sharing`.
enum class PluginFiles {
  kExtended,  ///< all of them take effect
  kAsNvidia,  ///< none takes effect, as in the plugin
};

/// How the kubelet's containers receive their devices: NVIDIA's deviceListStrategy.
enum class DeviceList { kEnvvar, kVolumeMounts, kCdiAnnotations, kCdiCri };

/// What the agent writes into the configuration of the kubelet's engine.
enum class EngineSetup {
  kOff,      ///< nothing
  kCdi,      ///< enables the injection of CDI devices, where it is not enabled
  kRuntime,  ///< kCdi, and penstock-runtime under the names of the vendors that are there
};

struct ContainersConfig {
  std::vector<DeviceList> device_list;  ///< all of these are used; empty: what this node's engine
                                        ///< reports that it supports
  Switch device_files = Switch::kAuto;  ///< the kubelet also gets device files; auto: where the
                                        ///< engine does not inject them by CDI
  std::string cdi_annotation_prefix = "cdi.k8s.io/";
  EngineSetup configure_engine = EngineSetup::kOff;
  std::string engine_socket;  ///< of the kubelet's container engine; empty: the engine that the
                              ///< kubelet uses
  /// Devices of other classes that every container gets with its own, if they exist on this node:
  /// "gds", "imex=0".
  std::vector<std::string> device_classes;
  std::vector<std::string> required_classes;  ///< a subset of device_classes; while one of them
                                              ///< is missing, nothing is offered to the kubelet
  bool operator==(const ContainersConfig&) const = default;
};

/// The CDI specifications that the agent writes to paths.cdi_root.
struct CdiConfig {
  Switch enabled = Switch::kAuto;  ///< auto: if the agent can write there
  std::string hook;  ///< the hook program's path as the host sees it; empty: penstock-hook beside
                     ///< this program
  std::string install;       ///< folder into which the hook and the runtime are copied, as this
                             ///< program sees it; empty: no copy
  std::string host_install;  ///< `install` as the host sees it; empty: the same
  std::vector<std::string> disable_hooks;  ///< names from HookNames(), left out of
                                           ///< specifications; or "all"
  std::vector<std::string> enable_hooks;   ///< names from HookNames(), of hooks that are off by
                                           ///< default
  Switch additional_gids = Switch::kAuto;  ///< containers join the groups of device files that are
                                           ///< not open to all users; auto: those of pods do,
                                           ///< where the kubelet's engine can read it
  bool operator==(const CdiConfig&) const = default;
};

/// Which labels the node gets, and how they are published.
struct LabelsConfig {
  Switch node = Switch::kAuto;           ///< directly on the Node object; auto: in a cluster
  Switch node_feature = Switch::kOff;    ///< as NFD's NodeFeature object; auto: if its CRD is
                                         ///< installed
  std::string features_file;             ///< as a file in NFD's features.d; empty: none
  Switch host_features = Switch::kAuto;  ///< feature.node.kubernetes.io/*; auto: if no NFD labels
                                         ///< this node
  bool timestamp = true;                 ///< nvidia.com/gfd.timestamp
  std::string machine_type_file = "/sys/class/dmi/id/product_name";
  bool operator==(const LabelsConfig&) const = default;
};

/// The ConfigMap that contains a configuration for each kind of node, and the key that applies when
/// the node's label names none.
struct ConfigMapConfig {
  std::string name;  ///< empty: there is none
  std::string namespace_name;
  std::string default_key;
  std::vector<std::string> fallbacks = {
      "named", "single"};  ///< "named", "single", "empty", tried in this order
  std::string node_label;  ///< empty in a document: ConfigTerms::node_label
  bool operator==(const ConfigMapConfig&) const = default;
};

/// The agent's use of an API server.
struct ClusterConfig {
  Switch enabled = Switch::kAuto;  ///< auto: in a pod, or if a kubeconfig is configured
  std::string kubeconfig;          ///< empty: the in-cluster configuration
  std::string
      namespace_name;  ///< of events and NodeFeature objects; empty: the pod's own, else "default"
  Switch node_state = Switch::kAuto;  ///< the node's penstock.io object; auto: if its CRD is
                                      ///< installed
  Switch events = Switch::kOn;        ///< Events on the Node
  Switch node_status = Switch::kOn;   ///< one patch of nodes/status after the kubelet received the
                                      ///< device list
  ConfigMapConfig config_map;
  Switch ready_condition =
      Switch::kOn;  ///< the condition penstock.io/AcceleratorsReady of the Node
  bool operator==(const ClusterConfig&) const = default;
};

/// What the validation of the node shows to programs that wait for the GPU Operator's validator.
struct ValidationConfig {
  std::string directory;  ///< of the files by whose existence they wait; empty: none are written
  bool compute = true;    ///< whether a short program computes once on each free device
  bool exporter_names = false;  ///< whether the metrics page also has the families of the GPU
                                ///< Operator's node status exporter
  bool container = true;  ///< whether a container with all devices is started after each change of
                          ///< what it gets
  bool operator==(const ValidationConfig&) const = default;
};

/// The naming schemes of metrics. With several schemes, each value appears in several families.
enum class MetricNames {
  kAccelerator,  ///< "accelerator": Penstock's own, one schema for all vendors
  kExporter,     ///< "dcgm": the names of the vendors' own exporters
  kExporterNew,  ///< "dcgm-4.7": the newer naming of NVIDIA's exporter, with its units
};

/// A row of the counters file of a vendor's exporter.
struct MetricRow {
  std::string field;  ///< "DCGM_FI_DEV_GPU_UTIL"
  std::string type;   ///< "gauge", "counter", "label"
  std::string help;
  bool operator==(const MetricRow&) const = default;
};

/// What the file of settings of a vendor's exporter says besides the fields (AMD's exporter:
/// config.json). It applies to the families of that exporter alone.
struct ExporterSettings {
  std::string prefix;                                      ///< of the names of its families
  std::map<std::string, std::string, std::less<>> labels;  ///< of all its series
  /// Names of labels, with the key of the holder's label whose value each has.
  std::map<std::string, std::string, std::less<>> holder_labels;
  std::vector<int> devices;  ///< numbers of those that are shown; empty: all
  bool pod_uid = false;
  bool operator==(const ExporterSettings&) const = default;
};

/// The host's label on an exporter's series; dcgm-exporter called it "Hostname" before 4.8.3.
enum class HostLabel { kNone, kOld, kNew, kBoth };

struct TelemetryConfig {
  base::Duration interval = std::chrono::seconds(10);  ///< between two collections
  std::vector<MetricNames> names = {MetricNames::kExporter, MetricNames::kAccelerator};
  bool names_set = false;  ///< `names` were configured and are not the default
  bool processes = true;   ///< whether usage per process is shown
  /// Globs for names of families: families to leave out, and families to show although a glob
  /// leaves them out.
  std::vector<std::string> exclude, include;

  // Settings of the exporters' names.
  std::vector<MetricRow> counters;  ///< the fields to show; empty: those of the file, and without
                                    ///< a file the exporter's default
  std::string counters_file;        ///< dcgm-exporter's CSV, reread when it changes while the agent
                                    ///< runs; its rows are in `counters`
  std::string counters_map;         ///< "namespace:name" of a ConfigMap with such a CSV under
                                    ///< "metrics"; takes precedence over the file
  std::string exporter_file;  ///< config.json of AMD's exporter, reread when it changes; its fields
                              ///< are in `counters`, the rest in `exporter`
  ExporterSettings exporter;
  HostLabel host_label = HostLabel::kNew;
  bool old_names = false;        ///< labels as before the exporter's renaming: "uuid", "pod_name"
  bool blanks_replaced = false;  ///< blanks in models' names are replaced
  bool holders = true;           ///< device series name the pod that holds the device
  /// For a shared device: on, each family has a series for each holder, as with
  /// KUBERNETES_VIRTUAL_GPUS; off, no series names a holder; auto, a series for each pod where the
  /// pod's own value is known, else one series without a holder.
  Switch virtual_gpus = Switch::kAuto;
  bool pod_uid = false;
  base::Duration errors_window = std::chrono::minutes(5);
  base::Duration clock_events_window = std::chrono::minutes(5);

  /// Globs for keys of holders' labels (a pod's, or those that `penstock run --label` set) that
  /// series and usage records carry; empty: none.
  std::vector<std::string> holder_labels;
  base::Duration keep_ended = std::chrono::minutes(5);  ///< how long a holder is still shown
                                                        ///< after it has ended
  std::string job_directory;  ///< folder with a file for each device that names its jobs, for the
                              ///< exporters' names; reread when it changes; empty: none
  bool operator==(const TelemetryConfig&) const = default;
};

/// The records of which holder used what.
struct UsageConfig {
  bool records = true;
  std::string dir;                              ///< empty: the folder "usage" in paths.stateDir
  base::Bytes file_size = base::Mebibytes(16);  ///< a file that exceeds this size is followed by
                                                ///< a new one
  int files = 16;                               ///< number of files that are kept
  base::Duration checkpoint = std::chrono::minutes(15);  ///< interval between records of a
                                                         ///< running holder
  base::Duration idle_after = std::chrono::minutes(30);  ///< a device held and unused for this
                                                         ///< long is idle
  double idle_below = 0.01;  ///< utilization, 0 to 1, below which a device counts as unused
  bool operator==(const UsageConfig&) const = default;
};

struct HttpConfig {
  std::string listen = "127.0.0.1:9400";  ///< host:port, unix:PATH, systemd:NAME, or "off"
  std::string web_config_file;  ///< Prometheus' web configuration (TLS, users), reread when it
                                ///< changes while the agent runs; empty: no TLS and no users
  int connections = 64;
  base::Duration deadline = std::chrono::seconds(5);  ///< for a whole connection
  bool operator==(const HttpConfig&) const = default;
};

/// What the page at / shows besides this node.
struct PageConfig {
  std::vector<std::string> nodes;  ///< addresses of other agents: "https://gpu2.example.com:9400"
  std::string credentials_file;  ///< for them: "basic USER:PASSWORD" or "bearer TOKEN"; empty: none
  std::string ca_file;  ///< certificate authorities that sign their certificates; empty: the
                        ///< system's
  bool operator==(const PageConfig&) const = default;
};

/// Limits for one user in the queue for devices while other users wait in it, too; 0: no limit.
struct QueueConfig {
  int devices = 0;  ///< devices held; requests beyond this number are served after all others
  int waiting = 0;  ///< queued requests; further ones are refused
  base::Duration time = base::Duration::zero();  ///< how long a run may not be ended in favour of
                                                 ///< a queued request
  bool operator==(const QueueConfig&) const = default;
};

struct NodeConfig {
  PathsConfig paths;
  std::string node_name;  ///< empty: the host's name

  Switch kubelet_allocator = Switch::kAuto;  ///< auto: if the kubelet's directory exists
  Switch local_allocator = Switch::kAuto;    ///< auto: on
  std::string local_group = "penstock";      ///< members may use the local allocator; if this group
                                             ///< does not exist, only root may
  /// Control groups of the machine ("/user.slice") whose processes can open devices only while they
  /// hold them; empty: none.
  std::vector<std::string> closed_cgroups;
  std::vector<AssignmentRule> assignments;  ///< take precedence over the default: the kubelet
                                            ///< where its allocator is enabled, else local
  QueueConfig queue;

  HealthConfig health;

  std::vector<ResourceRule> resources;  ///< take precedence over the default, the vendor's single
                                        ///< name for all models
  bool resource_per_model = false;      ///< the default is one name per model
  PartsStrategy parts = PartsStrategy::kDefault;
  /// Of the vendor whose users have such an option, in place of `parts` if it is not kDefault.
  PartsStrategy profiled_parts = PartsStrategy::kDefault;
  std::vector<std::string> parts_on_demand;  ///< devices on which parts are created for requests of
                                             ///< local users: ids, indices or globs for the
                                             ///< model's name; empty: none
  bool parts_by_label = true;  ///< devices are divided as the node's label, or else the default
                               ///< layout, asks
  std::string layouts_file;  ///< of mig-parted; empty: layouts are made from the devices' profiles
  /// A list of the MIG manager (clients.yaml): services of the host that are stopped while they
  /// hold a device that is divided; empty: none.
  std::string client_services_file;
  std::string default_layout;      ///< for a node without a label that names one; empty: none
  std::string mode_profiles_file;  ///< of DCM: which modes devices get; empty: profiles are named
                                   ///< after the modes of the devices
  /// For a mode that takes effect when the driver is loaded again.
  ResetPolicy reload_driver = ResetPolicy::kNever;
  SharingConfig sharing;

  HttpConfig http;
  PageConfig page;
  TelemetryConfig telemetry;
  UsageConfig usage;

  DeviceIds device_ids = DeviceIds::kUuid;
  PluginFiles plugin_files = PluginFiles::kExtended;
  ContainersConfig containers;
  CdiConfig cdi;
  LabelsConfig labels;
  ClusterConfig cluster;
  ValidationConfig validation;
  bool restrict_workers = false;  ///< processes that load a driver's library make no system call
                                  ///< that administers the machine
};

/// Reads and checks a whole document (YAML; JSON is YAML). Returns kInvalidArgument with all
/// mistakes at once, each with file:line:column and a hint. Adds deprecated keys to `remarks`.
base::Result<NodeConfig> ParseNodeConfig(std::string_view text, std::string_view file,
                                         const ConfigTerms& terms = {},
                                         std::vector<std::string>* remarks = nullptr);

/// Writes the values as a document that ParseNodeConfig reads, with every key: the output of
/// `penstock config show`.
std::string ToYaml(const NodeConfig& config);

/// As ToYaml, with only the keys whose values are not the default.
std::string ToShortYaml(const NodeConfig& config);

/// A path that can be set by a flag and by the key of the same name below `paths`.
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
std::string_view ToString(MetricNames names);  ///< "accelerator", "dcgm", "dcgm-4.7"

/// The actions of the hook program that a specification can request: "create-symlinks". The names
/// are those of NVIDIA's nvidia-cdi-hook (cmd/nvidia-cdi-hook/commands).
const std::vector<std::string>& HookNames();

/// Checks what one key alone cannot show (such as paths that contradict each other), and values
/// that flags may have set. Returns kInvalidArgument with all problems.
base::Status Validate(const NodeConfig& config);

}  // namespace penstock::api
