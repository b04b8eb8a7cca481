// CDI specifications (Container Device Interface, cncf-tags/container-device-interface, SPEC.md and
// specs-go/config.go 1.1.0): the contents of a specification, the version of the format that it
// requires, and its text. Pure.
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
  std::string path;       ///< path in the container
  std::string host_path;  ///< empty: the same as in the container
  std::string type;       ///< "", "b", "c", "u", "p"
  std::optional<std::int64_t> major, minor;
  std::optional<std::uint32_t> file_mode;
  std::string permissions;  ///< a subset of "rwm"; empty: all
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
  std::vector<std::string> args;  ///< the first one is the program's own name
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

struct CdiEdits {
  std::vector<std::string> env;  ///< "NAME=value"
  std::vector<DeviceNode> nodes;
  std::vector<NetDevice> net_devices;
  std::vector<Hook> hooks;
  std::vector<Mount> mounts;
  std::optional<IntelRdt> intel_rdt;
  std::vector<std::uint32_t> additional_gids;
  bool operator==(const CdiEdits&) const = default;
};

struct Device {
  std::string name;
  std::map<std::string, std::string> annotations;
  CdiEdits edits;
  bool operator==(const Device&) const = default;
};

struct Spec {
  std::string version;  ///< "0.5.0"; empty in a specification under construction: ToJson and
                        ///< ToYaml then write the lowest version that can express it
  std::string kind;     ///< "nvidia.com/gpu"
  /// Read from other programs' specifications. Penstock's own have none, because annotations
  /// require version 0.6.0, which tools such as podman 4.3 cannot read. The driver and CUDA
  /// versions are in the arguments of enable-cuda-compat.
  std::map<std::string, std::string> annotations;
  std::vector<Device> devices;
  CdiEdits edits;  ///< applied to every container that gets one of the devices
  bool operator==(const Spec&) const = default;
};

/// Returns the lowest version of the format that supports the whole content (specs-go/version.go),
/// at least 0.3.0.
std::string MinimumVersion(const Spec& spec);

/// Returns what requires that version, for users: "additionalGids"; empty if the content needs
/// nothing newer than 0.3.0.
std::string WhatTakesMinimum(const Spec& spec);

/// Whether `version` of the format is newer than `than`; an unknown version is newer than all known
/// ones.
bool IsLater(std::string_view version, std::string_view than);

/// Checks all rules of the format (pkg/cdi/{spec,device,container-edits}.go). Returns
/// kInvalidArgument with all problems at once.
base::Status Check(const Spec& spec);

/// Reads JSON or YAML as strictly as the engines' own reader: an unknown key, a version that is
/// unknown or lower than the content requires, or a bad name makes the whole file invalid. Returns
/// kInvalidArgument with all problems at once, each with file:line:column.
base::Result<Spec> Parse(std::string_view text, std::string_view file);

/// Writes the keys in the order of the specification, and devices and edits in their given order:
/// equal specifications always give equal text.
std::string ToJson(const Spec& spec);
std::string ToYaml(const Spec& spec);

/// "vendor.com/class=name".
struct QualifiedName {
  std::string kind, device;
};
/// Parses a name by the rules of pkg/parser/parser.go; returns nothing for any other text.
std::optional<QualifiedName> ParseName(std::string_view text);
/// Returns in a few words why this is not a valid kind, or not a valid device name; empty if it is
/// valid.
std::string WhyNoKind(std::string_view kind);
std::string WhyNoDeviceName(std::string_view name);
/// An id as the name of a device: '/', which no name may have, becomes '_', as in the MIG devices
/// of NVIDIA's drivers before 470, "MIG-GPU-.../3/0".
std::string DeviceNameOf(std::string_view id);

/// Returns the customary file name for a kind, without suffix: "nvidia.com-gpu".
std::string FileName(std::string_view kind);

}  // namespace penstock::api::cdi
