// The one report of a node: what `penstock status -o json`, `penstock ps -o json` and /debug/state say. Documented in
// docs/reference/report.md; stable.
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
  std::string state;  ///< "handed", "held", "outside", "graphics"
  std::string kind;   ///< "run", "pod", "outside", "graphics"
  std::string lease;  ///< empty for outside
  std::vector<std::int64_t> pids;
  std::string user, command;
  std::string pod, namespace_name, container;
  std::string enforcement;  ///< "devices", "visibility"; empty for outside
  std::string since;        ///< RFC 3339
  std::string note;         ///< what is out of the ordinary about it, one sentence: its device is not there any more; else empty
};

struct DeviceReport {
  std::string id, vendor, model;
  int index = -1;
  std::string pci;
  std::optional<int> numa;
  std::uint64_t memory_bytes = 0;
  std::string health_state;  ///< "healthy", "unhealthy", "unknown", "gone"
  std::string health_reason;
  std::string health_since;
  std::string door;      ///< "kubelet", "local", ""
  std::string withheld;  ///< why it is offered nowhere, or not as the configuration asks, although it is well
  std::string serial;
  std::string resource;                  ///< "nvidia.com/gpu"; empty where it is offered nowhere
  std::string sharing;                   ///< "none", "time-slicing", "mps"
  int shares = 1;                        ///< slots that are offered
  int free = 0;                          ///< of those, the ones that can be had now
  std::string isolation;                 ///< "none", "memory-per-process", "memory", "memory-compute", "hardware"
  std::uint64_t share_memory_bytes = 0;  ///< limit that is in force for each process; 0: none
  int share_compute_percent = 0;         ///< likewise
  std::string probation_until;           ///< RFC 3339; empty: not on probation
  std::int64_t relapses = 0;             ///< how often it became unwell again soon after it was well
  std::string replaced;                  ///< which device it took the place of, one sentence; empty: none that this agent knows
  std::string telemetry_problem;         ///< why its measurements are missing or late, one sentence; empty: they come
  std::vector<HolderReport> holders;
  std::vector<HolderReport> graphics;  ///< processes that only draw on it and were not given it: in nobody's way
};

struct DoorReport {
  std::string name;   ///< "kubelet", "local", "cluster"
  std::string state;  ///< "open", "waiting", "closed", "stepped-back"
  std::string reason;
  std::vector<std::string> resources;  ///< "nvidia.com/gpu"
  std::string enforcement;             ///< of what is given out there: "devices", "visibility"; empty where it gives nothing out
  /// How containers are given devices there: "cdi-cri", "cdi-annotations", "envvar", "volume-mounts", "device-files"; empty: not by these.
  std::vector<std::string> device_list;
  std::string device_list_reason;  ///< why so: "containerd 1.7.24 injects CDI devices"
  /// Control groups to whose processes the devices are closed unless they hold them: "/user.slice".
  std::vector<std::string> closed_cgroups;
  std::string closed_problem;  ///< why they are not to others that the configuration names; empty: there are none
};

struct VendorReport {
  std::string vendor;
  std::string driver;  ///< version; empty while there is none
  std::string runtime;
  std::string reason;
};

/// The configuration in force.
struct ConfigurationReport {
  std::string origin;                ///< "defaults", "file /etc/penstock/node.yaml", "ConfigMap ns/name, key any"
  std::string since;                 ///< RFC 3339
  std::string problem;               ///< why a newer one is not in force: all that is wrong with it; empty where there is none
  std::string problem_origin;        ///< where that one came from
  std::vector<std::string> not_yet;  ///< what it asks for that this version cannot do, by the names of its keys
  std::vector<std::string> remarks;  ///< what of it was passed over or means something else here, each sentence begins with the key's name
  std::string waiting;               ///< what has not been read yet and is to be in force: nothing is told to the kubelet until then
};

/// A field of an exporter's that the metrics page was asked to show, by a list of counters or by default, and cannot.
struct UnavailableMetric {
  std::string name;                 ///< "DCGM_FI_PROF_DRAM_ACTIVE"
  std::vector<std::string> models;  ///< whose devices do not have it; empty: no device anywhere has it here
  std::string reason;
};

/// A server of the driver's through which devices are shared.
struct ServerReport {
  std::string set;     ///< "nvidia.com/gpu"
  std::string kind;    ///< "mps"
  std::string state;   ///< "ready", "waiting", "ending" (wanted no more, and in use), "ending"
  std::string reason;  ///< why it is not ready
  std::int64_t clients = 0;
  std::vector<std::string> devices;
};

/// The CDI specifications that this agent writes.
struct CdiReport {
  std::string folder;
  std::vector<std::string> kinds;     ///< that are written: "nvidia.com/gpu"
  std::vector<std::string> problems;  ///< why others are not
  std::vector<std::string> remarks;   ///< what containers go without
};

/// A condition as Kubernetes has them.
struct ConditionReport {
  std::string type;  ///< "Ready", "DriverReady", "DevicesHealthy", "SharingReady", "ConfigurationApplied", "KubeletDoor"
  bool status = false;
  std::string reason;  ///< one word: "AllHealthy"
  std::string message;
  std::string since;  ///< of the last change of `status`
};

struct Report {
  std::uint64_t generation = 0;
  std::string node, version;
  std::int64_t agent_pid = 0;
  std::vector<VendorReport> vendors;
  std::vector<DeviceReport> devices;
  std::vector<HolderReport> removed;  ///< holders of devices that are not there any more, as a run on a GPU that was replaced
  std::vector<DoorReport> doors;
  std::vector<ServerReport> servers;
  CdiReport cdi;
  ConfigurationReport configuration;
  std::vector<UnavailableMetric> unavailable_metrics;
  std::vector<ConditionReport> conditions;
  std::vector<std::string> enforcement;  ///< kinds in force here: "devices", "visibility"
};

/// {"generation", "node", "version", "agentPid", "vendors", "devices", "holdersOfRemovedDevices", "doors", "servers", "cdi",
/// "configuration", "unavailableMetrics" (where there are any), "conditions", "enforcement"}.
std::string ToJson(const Report& report);

/// {"holders": [...], "graphicsProcesses": [...]}: the same holders, flat, those of removed devices last.
std::string HoldersToJson(const Report& report);

base::Result<Report> ParseReport(std::string_view json);

}  // namespace penstock::api
