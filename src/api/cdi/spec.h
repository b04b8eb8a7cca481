// CDI specifications (Container Device Interface, cncf-tags/container-device-interface, SPEC.md and specs-go/config.go 1.1.0): what is in
// one, which version of the format that takes, and its text. Pure.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::api::cdi {

struct DeviceNode {
  std::string path;       ///< in the container
  std::string host_path;  ///< empty: as in the container
  std::string type;       ///< "", "b", "c", "u", "p"
  std::optional<std::int64_t> major, minor;
  std::optional<std::uint32_t> file_mode;
  std::string permissions;  ///< of "rwm"; empty: all
  std::optional<std::uint32_t> uid, gid;
  bool operator==(const DeviceNode&) const = default;
};

struct Mount {
  std::string host_path, container_path;
  std::vector<std::string> options;
  std::string type;
  bool operator==(const Mount&) const = default;
};

struct Hook {
  std::string name;  ///< "createContainer"
  std::string path;
  std::vector<std::string> args;  ///< the first is the program's own name
  std::vector<std::string> env;
  std::optional<int> timeout;
  bool operator==(const Hook&) const = default;
};

struct NetDevice {
  std::string host_interface, name;
  bool operator==(const NetDevice&) const = default;
};

struct IntelRdt {
  std::string clos_id, l3_cache_schema, memory_bandwidth_schema;
  std::vector<std::string> schemata;
  bool enable_monitoring = false, enable_cmt = false, enable_mbm = false;
  bool operator==(const IntelRdt&) const = default;
};

struct Edits {
  std::vector<std::string> env;  ///< "NAME=value"
  std::vector<DeviceNode> nodes;
  std::vector<NetDevice> net_devices;
  std::vector<Hook> hooks;
  std::vector<Mount> mounts;
  std::optional<IntelRdt> intel_rdt;
  std::vector<std::uint32_t> additional_gids;
  bool operator==(const Edits&) const = default;
};

struct Device {
  std::string name;
  std::map<std::string, std::string> annotations;
  Edits edits;
  bool operator==(const Device&) const = default;
};

struct Spec {
  std::string version;  ///< "0.5.0"; empty in one that is being made: ToJson and ToYaml write the lowest that can express it
  std::string kind;     ///< "nvidia.com/gpu"
  /// Of other people's: ours have none, since they take version 0.6.0, which podman 4.3 and its kin cannot read. Driver and CUDA version
  /// stand in the arguments of enable-cuda-compat.
  std::map<std::string, std::string> annotations;
  std::vector<Device> devices;
  Edits edits;  ///< of every container that gets one of the devices
  bool operator==(const Spec&) const = default;
};

/// The lowest version of the format that has everything in it (specs-go/version.go), 0.3.0 at least.
std::string MinimumVersion(const Spec& spec);

/// What in it takes that version, for people: "additionalGids"; empty where there is nothing that came after 0.3.0.
std::string WhatTakesMinimum(const Spec& spec);

/// Whether a version of the format came after another; one that is not known came after all that are.
bool IsLater(std::string_view version, std::string_view than);

/// Everything that the format asks of it (pkg/cdi/{spec,device,container-edits}.go), all problems at once: kInvalidArgument.
base::Status Check(const Spec& spec);

/// Reads JSON or YAML, as strictly as the engines' own reader: an unknown key, a version that is not known or lower than what the content
/// takes, a bad name make the whole file invalid. kInvalidArgument, all at once, with file:line:column.
base::Result<Spec> Parse(std::string_view text, std::string_view file);

/// Keys in the order of the specification, devices and edits as they are: the same spec is the same text, whoever writes it.
std::string ToJson(const Spec& spec);
std::string ToYaml(const Spec& spec);

/// "vendor.com/class=name".
struct QualifiedName {
  std::string kind, device;
};
/// By pkg/parser/parser.go; nothing for anything else.
std::optional<QualifiedName> ParseName(std::string_view text);
/// Why this is no kind, or no device's name, in a few words; empty where it is.
std::string WhyNoKind(std::string_view kind);
std::string WhyNoDeviceName(std::string_view name);

/// "nvidia.com-gpu", the customary file name for a kind, without suffix.
std::string FileName(std::string_view kind);

}  // namespace penstock::api::cdi
