// The report of a node: what `penstock status -o json`, `penstock ps -o json` and /debug/state
// print. Documented in docs/reference/report.md; stable.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::api {

struct HolderReport {
  std::string slot;
  std::string device;  ///< id
  int index = -1;
  std::string number;  ///< of a part: "0:1"
  std::string state;   ///< "handed", "held", "outside", "graphics"
  std::string kind;    ///< "run", "pod", "outside", "graphics"
  std::string lease;   ///< empty for outside processes
  std::vector<std::int64_t> pids;
  std::string user, command;
  std::string pod, namespace_name, container;
  std::string enforcement;  ///< "devices", "visibility"; empty for outside processes
  std::string since;        ///< RFC 3339
  std::string note;  ///< one sentence about an unusual state: the device no longer exists; else
                     ///< empty
  bool operator==(const HolderReport&) const = default;
};

struct DeviceReport {
  std::string id, vendor, model;
  int index = -1;
  std::string number;      ///< of a part: "0:1"
  std::string parent;      ///< of a part: id of the device that it is a part of
  std::string profile;     ///< of a part: "1g.5gb"
  int parts = 0;           ///< into how many it is divided; it is then not offered itself
  bool on_demand = false;  ///< parts of it are created for requests of local users
  std::string kind;        ///< "GPU", "accelerator"; empty: from an agent that does not say
  std::string pci;
  std::optional<int> numa;
  std::uint64_t memory_bytes = 0;
  std::string health_state;  ///< "healthy", "unhealthy", "unknown", "gone"
  std::string health_reason;
  std::string health_since;
  std::string allocator;  ///< Allocator::name; "" for none
  std::string withheld;   ///< why no allocator offers it, or why it is not offered as configured,
                          ///< although it is healthy
  std::string serial;
  std::string resource;   ///< "nvidia.com/gpu"; empty if no allocator offers it
  std::string sharing;    ///< "none", "time-slicing", "mps"
  int shares = 1;         ///< slots that are offered
  int free = 0;           ///< of those, the slots that can be allocated now
  std::string isolation;  ///< "none", "memory-per-process", "memory", "memory-compute", "hardware"
  std::uint64_t share_memory_bytes = 0;  ///< limit in force for each process; 0: none
  int share_compute_percent = 0;         ///< limit in force for each process; 0: none
  std::string probation_until;           ///< RFC 3339; empty: not on probation
  std::int64_t relapses = 0;  ///< how often it became unhealthy again soon after recovery
  std::string warning;        ///< what is wrong with it although it is in use, as long as it
                              ///< lasts; empty: nothing
  std::string replaced;       ///< the device that it replaced, one sentence; empty: none that this
                              ///< agent knows
  std::string telemetry_problem;  ///< why its measurements are missing or late, one sentence;
                                  ///< empty: they arrive
  std::vector<HolderReport> holders;
  std::vector<HolderReport> graphics;  ///< processes that only draw on it and were not allocated
                                       ///< it; they do not block allocation
  bool operator==(const DeviceReport&) const = default;
};

/// The number by which users know the device: "3", "0:1"; empty if it has none.
std::string NumberOf(const DeviceReport& device);

/// Whether several holders may have shares of the device at once.
bool IsShared(const DeviceReport& device);

struct AllocatorReport {
  std::string name;   ///< that of an allocator (allocators.h), or "cluster"
  std::string state;  ///< "open", "waiting", "closed", "stepped-back"
  std::string reason;
  std::vector<std::string> resources;  ///< "nvidia.com/gpu"
  std::string enforcement;  ///< of what it allocates: "devices", "visibility"; empty if it
                            ///< allocates nothing
  /// How containers of this allocator receive devices: "cdi-cri", "cdi-annotations", "envvar",
  /// "volume-mounts", "device-files"; empty: by none of these.
  std::vector<std::string> device_list;
  std::string device_list_reason;  ///< the reason for this choice: "containerd 1.7.24 injects CDI
                                   ///< devices"
  /// Control groups whose processes can open devices only while they hold them: "/user.slice".
  std::vector<std::string> closed_cgroups;
  std::string closed_problem;  ///< why other configured control groups are not closed; empty: all
                               ///< of them are
  bool operator==(const AllocatorReport&) const = default;
};

struct VendorReport {
  std::string vendor;
  std::string driver;  ///< version; empty while there is none
  std::string runtime;
  std::string reason;
  std::string driver_source;  ///< "host", "container" (a driver container); empty without a driver
  std::string driver_root;    ///< as the host sees it
  std::string driver_since;   ///< RFC 3339: when this driver was first opened
  bool operator==(const VendorReport&) const = default;
};

/// The configuration in force.
struct ConfigurationReport {
  std::string origin;  ///< "defaults", "file /etc/penstock/node.yaml", "ConfigMap ns/name, key any"
  std::string since;   ///< RFC 3339
  std::string problem;  ///< why a newer configuration is not in force: all its mistakes; empty if
                        ///< there is none
  std::string problem_origin;  ///< the origin of the newer configuration
  std::vector<std::string>
      not_yet;  ///< what it asks for that this version does not support, by the names of its keys
  std::vector<std::string> remarks;  ///< settings that are ignored or have another meaning here;
                                     ///< each sentence begins with the key's name
  std::string waiting;  ///< a configuration that takes effect once it has been read; until then
                        ///< nothing is advertised to the kubelet
  bool operator==(const ConfigurationReport&) const = default;
};

/// A field of a vendor's exporter that the metrics page should show, by a list of counters or by
/// default, and cannot.
struct UnavailableMetric {
  std::string name;  ///< "DCGM_FI_PROF_DRAM_ACTIVE"
  std::vector<std::string>
      models;  ///< models whose devices lack the field; empty: no device of this node has it
  std::string reason;
  bool operator==(const UnavailableMetric&) const = default;
};

/// A server of the driver through which devices are shared.
struct ServerReport {
  std::string set;     ///< "nvidia.com/gpu"; of a part, its id
  std::string kind;    ///< "mps"
  std::string state;   ///< "ready", "waiting", "ending" (no device is to be shared through it,
                       ///< but it is still in use)
  std::string reason;  ///< why it is not ready
  std::int64_t clients = 0;
  std::vector<std::string> devices;
  bool operator==(const ServerReport&) const = default;
};

/// The CDI specifications that this agent writes.
struct CdiReport {
  std::string folder;
  std::vector<std::string> kinds;     ///< kinds that are written: "nvidia.com/gpu"
  std::vector<std::string> problems;  ///< why other kinds are not written
  std::vector<std::string> remarks;   ///< what containers lack
  bool operator==(const CdiReport&) const = default;
};

/// A condition, as in Kubernetes.
struct ConditionReport {
  std::string type;  ///< "Ready", "DriverReady", "DevicesHealthy", "SharingReady",
                     ///< "ConfigurationApplied", "KubeletDoor",
                     ///< "AcceleratorsReady"
  bool status = false;
  std::string reason;  ///< one word: "AllHealthy"
  std::string message;
  std::string since;  ///< time of the last change of `status`
  bool operator==(const ConditionReport&) const = default;
};

/// The layout by which devices are divided into parts.
struct LayoutReport {
  std::string name;    ///< empty: none was applied
  std::string source;  ///< who applied it: "user", "label"
  std::string state;   ///< "pending", "success", "failed"
  std::string reason;  ///< of "failed": each device that is not divided so, and why; of "pending"
                       ///< after a reboot: by when the kubelet gets devices
  bool operator==(const LayoutReport&) const = default;
};

/// A step of the validation of this node: something that has to work before a container can use a
/// device.
struct ValidationStep {
  std::string
      name;  ///< "driver", "device-nodes", "fabric", "compute", "toolkit", "plugin", "devices"
  std::string state;   ///< "passed", "failed", "waiting", "skipped"
  std::string reason;  ///< one sentence: what was found where it passed, otherwise the cause
  std::string remedy;  ///< what to do; empty: nothing
  std::string since;   ///< time of the last change of `state`
  bool operator==(const ValidationStep&) const = default;
};

/// Whether every step passed or was skipped, and at least one passed.
bool AllPassed(const std::vector<ValidationStep>& steps);

struct Report {
  std::uint64_t generation = 0;
  std::string node, version;
  std::int64_t agent_pid = 0;
  std::vector<VendorReport> vendors;
  std::vector<DeviceReport> devices;
  std::vector<HolderReport> removed;  ///< holders of devices that no longer exist, such as a run on
                                      ///< a GPU that was replaced
  std::vector<AllocatorReport> allocators;
  std::vector<ServerReport> servers;
  CdiReport cdi;
  ConfigurationReport configuration;
  LayoutReport layout;
  std::vector<UnavailableMetric> unavailable_metrics;
  std::vector<ValidationStep> validation;  ///< in the order in which they depend on each other;
                                           ///< empty: not known
  std::vector<ConditionReport> conditions;
  std::vector<std::string> enforcement;  ///< kinds in force on this node: "devices", "visibility"
  std::string next_kernel;  ///< release of the kernel that the node will boot next, as far as its
                            ///< boot loader's files say so; empty: the running one, or not known
  bool operator==(const Report&) const = default;
};

/// The report of the allocator of this name; null where there is none.
const AllocatorReport* AllocatorIn(const Report& report, std::string_view name);

/// That of the one whose offers are resources of the Node (Allocator::advertises).
const AllocatorReport* AdvertisingAllocator(const Report& report);

/// Keys: {"generation", "node", "version", "agentPid", "vendors", "devices",
/// "holdersOfRemovedDevices", "allocators", "doors" (the same, 0.1.0's name), "servers", "cdi",
/// "configuration", "layout" (if one was applied), "unavailableMetrics" (if there are any),
/// "validation", "conditions", "enforcement", "nextKernel" (if it is another than the running
/// one)}.
std::string ToJson(const Report& report);

/// {"holders": [...], "graphicsProcesses": [...]}: the same holders as one flat list, those of
/// removed devices last.
std::string HoldersToJson(const Report& report);

/// {"node", "ready", "validation": [...]}: what `penstock validate -o json` prints.
std::string ValidationToJson(const Report& report);

base::Result<Report> ParseReport(std::string_view json);

}  // namespace penstock::api
