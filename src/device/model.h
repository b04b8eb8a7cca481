// The vendor-neutral model: what a device is, how it does, what happened to it. No vendor's name, call or file is in here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/quantity.h"

namespace penstock::device {

/// A PCI function. Text form is sysfs' own: "0000:07:00.0", lower case.
struct PciAddress {
  std::uint32_t domain = 0;
  std::uint32_t bus = 0;
  std::uint32_t device = 0;
  std::uint32_t function = 0;
  auto operator<=>(const PciAddress&) const = default;
};

std::string ToString(const PciAddress& address);

/// Reads "0000:07:00.0", "00000000:07:00.0" and, without a function as kernel logs have it, "0000:07:00". Nothing for anything else.
std::optional<PciAddress> ParsePciAddress(std::string_view text);

/// Whether a model's name matches a glob, without case, with or without its first word: people write "A100*" for "NVIDIA A100-SXM4-40GB".
bool ModelMatches(std::string_view glob, std::string_view model);

/// A character device that a container needs. `path` is what the container calls it; where it lies on this machine is dev root + path.
struct DeviceFile {
  std::string path;  ///< "/dev/nvidia0"
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  bool operator==(const DeviceFile&) const = default;
};

/// Numbers of character devices, minors inclusive, that belong to single devices and are denied to those who hold none of them.
struct DeviceNumbers {
  std::uint32_t major = 0;
  std::uint32_t first_minor = 0;
  std::uint32_t last_minor = 0;
  bool operator==(const DeviceNumbers&) const = default;
};

/// How near two devices are, worst first, so that a greater value is nearer.
enum class Nearness {
  kUnknown,
  kSystem,       ///< across sockets
  kNode,         ///< same NUMA node, different host bridges
  kHostBridge,   ///< same host bridge
  kPciSwitches,  ///< several PCIe switches, no host bridge
  kPciSwitch,    ///< one PCIe switch
  kBoard,        ///< same board
};

/// From one device to another one.
struct Link {
  std::string peer;  ///< id of the other device
  Nearness nearness = Nearness::kUnknown;
  int fabric_lanes = 0;  ///< NVLinks, xGMI links, Gaudi ports between the two; through a switch: links into it
  bool operator==(const Link&) const = default;
};

/// How a device is given to several consumers at once.
enum class Sharing {
  kNone,         ///< one consumer has it
  kTimeSlicing,  ///< they take turns
  kMps,          ///< they go through a server of the driver's, as NVIDIA's MPS
};
std::string_view ToString(Sharing sharing);  ///< "none", "time-slicing", "mps"

/// What a device is cut into, as its consumers see it.
struct Shape {
  Sharing sharing = Sharing::kNone;
  int shares = 1;  ///< 1 exactly where sharing is none
  auto operator<=>(const Shape&) const = default;
};

/// What a change of mode concerns, and when it takes effect.
enum class ModeScope { kDevice, kLinkedDevices, kNode };
enum class ModeEffect { kNow, kAfterReset, kAfterDriverReload };

/// A way in which a device can be operated, e.g. partitioned or not.
struct Mode {
  std::string name;     ///< "mig", "compute-partition", "memory-partition"
  std::string current;  ///< "disabled", "SPX"
  std::string pending;  ///< equal to current where nothing is pending
  std::vector<std::string> available;
  ModeScope scope = ModeScope::kDevice;
  ModeEffect effect = ModeEffect::kNow;
  bool operator==(const Mode&) const = default;
};

/// A device, or a partition of one: facts that do not change while it is there. What a vendor cannot tell is empty, 0 or nothing.
struct Facts {
  std::string id;       ///< unique and stable over reboots: UUID, serial or, at worst, PCI address
  std::string vendor;   ///< "nvidia", "amd", "gaudi", "intel"
  std::string model;    ///< the vendor's product name
  int index = -1;       ///< the vendor's own number of it, as its users know it
  std::string address;  ///< what the backend calls it; opaque, see Backend::List
  std::optional<PciAddress> pci;
  std::optional<int> numa_node;
  std::string cpu_affinity;  ///< CPU list, "0-15,64-79"
  base::Bytes memory;
  std::string architecture;          ///< "ampere", "cdna3", "gaudi2"
  std::string architecture_version;  ///< "8.0" (compute capability), "gfx942"
  std::string serial;
  std::vector<DeviceFile> files;  ///< this device's own, those of graphics (/dev/dri) last
  std::vector<Link> links;
  std::string parent;  ///< id of the device this is a partition of
  std::vector<Mode> modes;
  std::map<std::string, std::string> details;  ///< further facts under the vendor's own names: "vbios", "brand", "pci.device-id"
  std::string withheld;  ///< why it cannot be offered although it is well, e.g. "MIG mode is enabled"; empty where it can

  bool operator==(const Facts&) const = default;
};

/// The driver behind a vendor's devices.
struct Driver {
  std::string vendor;
  std::string version;            ///< "550.54.15"
  std::string runtime_version;    ///< highest API version it serves: "12.4"
  std::vector<DeviceFile> files;  ///< shared by all its devices: control nodes
  std::vector<DeviceNumbers> guarded;
  bool operator==(const Driver&) const = default;
};

/// Where a piece of evidence comes from.
enum class EvidenceSource { kEvent, kKernelLog, kPoll };

/// Something that speaks about a device's health, not judged yet: node/health judges it by the vendor's dialect.
struct Evidence {
  EvidenceSource source = EvidenceSource::kPoll;
  std::string device;  ///< id; empty where only the PCI address is known
  std::optional<PciAddress> pci;
  std::string kind;       ///< the vendor's family of codes: "xid", "recovery-action", "lost", "remap-failure", "ras"
  std::int64_t code = 0;  ///< number within the kind
  std::string text;       ///< what the source said, for people
  bool standing = false;  ///< true: holds as long as each reading repeats it; false: happened once
  bool operator==(const Evidence&) const = default;
};

/// A process that a driver reports on a device.
struct DeviceProcess {
  std::int32_t pid = 0;
  base::Bytes memory;
  bool graphics_only = false;  ///< it draws and computes nothing, as display servers do: it keeps the device from nobody
  bool operator==(const DeviceProcess&) const = default;
};

/// One polled look at how a device does. What it measures is a Sample's (telemetry.h).
struct Reading {
  bool reachable = true;  ///< false: the device answered no call; `evidence` says why
  std::vector<Evidence> evidence;
  std::vector<DeviceProcess> processes;
  /// Whether the driver itself can say that a device needs nothing done (then silence of evidence means well); false on old drivers.
  bool tells_recovery = false;
  /// What was described is not so any more (a mode was changed, a fabric joined): describe it again.
  bool facts_changed = false;
  bool operator==(const Reading&) const = default;
};

enum class HealthState {
  kHealthy,    ///< can be used
  kUnhealthy,  ///< is there, must not be used
  kUnknown,    ///< not looked at yet, or a call about it hangs
  kGone,       ///< was there and is not now
};
std::string_view ToString(HealthState state);

struct Health {
  HealthState state = HealthState::kUnknown;
  std::string reason;  ///< one sentence; empty while healthy
  base::WallTime since{};
  bool operator==(const Health&) const = default;
};

}  // namespace penstock::device
