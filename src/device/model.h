// The vendor-neutral model of a device: its facts, readings, evidence and health. Vendor names,
// calls and files belong to the backends.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "base/core/quantity.h"

namespace penstock::device {

/// A PCI function. The text form is that of sysfs: "0000:07:00.0", lower case.
struct PciAddress {
  std::uint32_t domain = 0;
  std::uint32_t bus = 0;
  std::uint32_t device = 0;
  std::uint32_t function = 0;
  auto operator<=>(const PciAddress&) const = default;
};

std::string ToString(const PciAddress& address);

/// Parses "0000:07:00.0", "00000000:07:00.0" and, as kernel logs omit the function, "0000:07:00".
/// Returns nothing for any other text.
std::optional<PciAddress> ParsePciAddress(std::string_view text);

/// Whether a model name matches a glob, ignoring case, with or without the name's first word: users
/// write "A100*" for "NVIDIA A100-SXM4-40GB".
bool ModelMatches(std::string_view glob, std::string_view model);

/// A character device that a container needs. `path` is its path inside the container; on this
/// machine it is at dev root + path.
struct DeviceFile {
  std::string path;  ///< "/dev/nvidia0"
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  bool operator==(const DeviceFile&) const = default;
};

/// Numbers of character devices, minors inclusive, that belong to single devices. Access is denied
/// to processes that hold none of those devices.
struct DeviceNumbers {
  std::uint32_t major = 0;
  std::uint32_t first_minor = 0;
  std::uint32_t last_minor = 0;
  bool operator==(const DeviceNumbers&) const = default;
};

/// How near two devices are to each other, farthest first: a greater value is nearer.
enum class Nearness {
  kUnknown,
  kSystem,       ///< across sockets
  kNode,         ///< same NUMA node, different host bridges
  kHostBridge,   ///< same host bridge
  kPciSwitches,  ///< several PCIe switches, no host bridge
  kPciSwitch,    ///< one PCIe switch
  kBoard,        ///< same board
};

/// The connection from one device to another.
struct Link {
  std::string peer;  ///< id of the other device, which also stands for each of its parts
  Nearness nearness = Nearness::kUnknown;
  int fabric_lanes = 0;  ///< NVLinks, xGMI links or Gaudi ports between the two; through a switch:
                         ///< the links into it
  /// In the scale by which the vendor's own allocation ranks pairs; more is better. A pair without
  /// a link has 20 on one NUMA node, 10 on two. 0: the vendor has none, lanes and nearness count.
  int score = 0;
  bool operator==(const Link&) const = default;
};

/// How several holders use one device.
enum class Sharing {
  kNone,         ///< one holder has the whole device
  kTimeSlicing,  ///< holders take turns
  kServer,       ///< holders go through a server of the driver
};
/// The words of the report, metrics and records: "none", "time-slicing", "mps".
std::string_view ToString(Sharing sharing);

/// How a device is divided, as its holders see it.
struct Shape {
  Sharing sharing = Sharing::kNone;
  int shares = 1;  ///< 1 if and only if `sharing` is kNone
  auto operator<=>(const Shape&) const = default;
};

/// What keeps the holder of a device within a limit.
enum class Enforcer {
  kNothing,
  kServer,  ///< the server of the driver through which the holder uses the device
};
std::string_view ToString(Enforcer enforcer);  ///< "nothing", "server"

/// Limits of one holder of a device, with what enforces each. 0: no limit.
struct Limits {
  base::Bytes memory;
  Enforcer memory_by = Enforcer::kNothing;
  int compute_percent = 0;
  Enforcer compute_by = Enforcer::kNothing;
  bool operator==(const Limits&) const = default;
};

/// Which devices a change of mode affects, and when it takes effect.
enum class ModeScope { kDevice, kLinkedDevices, kNode };
enum class ModeEffect { kNow, kAfterReset, kAfterDriverReload };

/// A mode of operation of a device, e.g. partitioned or not.
struct Mode {
  std::string name;     ///< "mig", "compute-partition", "memory-partition"
  std::string current;  ///< "disabled", "SPX"
  std::string pending;  ///< equal to `current` if no change is pending
  std::vector<std::string> available;
  ModeScope scope = ModeScope::kDevice;
  ModeEffect effect = ModeEffect::kNow;
  bool operator==(const Mode&) const = default;
};

/// How much of a device there is. 0: unknown.
struct Capacity {
  base::Bytes memory;
  int compute_units = 0;  ///< of the kind that the vendor counts: multiprocessors, compute units
  Capacity& operator+=(const Capacity& more);  ///< at most the largest number of the type
  bool operator==(const Capacity&) const = default;
};

/// Whether a part does not fit into the whole, as far as both are known.
bool Exceeds(const Capacity& part, const Capacity& whole);

/// Where a part lies, in the slices that the vendor counts: on its device (MIG: of memory), or in
/// the part in which it was created (MIG: of compute).
struct Placement {
  int start = 0;
  int size = 0;
  auto operator<=>(const Placement&) const = default;
};

/// A kind of part that a device can be divided into, as its driver lists them. Parts whose
/// placements overlap exclude each other.
struct PartProfile {
  std::string name;    ///< the vendor's: "1g.5gb", "1g.5gb+me"
  std::string within;  ///< the profile of the parts in which it is created: "3g.20gb" for
                       ///< "1c.3g.20gb"; empty: it is created on the device itself
  int slices = 0;      ///< of compute
  int most = 0;        ///< how many there can be at once, on the device or in the part
  std::vector<Placement> placements;  ///< in which it can be, ascending; empty: any, which the
                                      ///< driver chooses, while slices are left. Of parts within
                                      ///< others, the driver may permit more than are listed
  Capacity capacity;
  std::map<std::string, int> engines;  ///< what it has to itself besides: {"ofa", 1}. All parts of
                                       ///< a device together have no more than its largest profile
  int kind = -1;  ///< the vendor's own number of such profiles, which its files name; -1: none
  bool operator==(const PartProfile&) const = default;
};

/// The kind of a device, by which messages call it.
enum class DeviceKind { kGpu, kAccelerator };
std::string_view ToString(DeviceKind kind);  ///< "GPU", "accelerator"

/// Facts about a device or a partition that do not change while it exists. A fact that the vendor
/// does not report is empty, 0 or nothing.
struct Facts {
  std::string id;      ///< unique and stable across reboots: UUID, serial number or, at worst, PCI
                       ///< address
  std::string vendor;  ///< "nvidia", "amd", "gaudi", "intel"
  DeviceKind kind = DeviceKind::kGpu;
  std::string model;    ///< the vendor's product name
  int index = -1;       ///< the vendor's own number of the device, as its users know it; of a
                        ///< partition: negative
  std::string number;   ///< the same of a partition: "0:1"
  std::string address;  ///< the backend's name of the device; opaque, see Backend::List
  std::optional<PciAddress> pci;
  std::optional<int> numa_node;
  std::string cpu_affinity;  ///< CPU list, "0-15,64-79"
  base::Bytes memory;
  int compute_units = 0;             ///< see Capacity
  std::string architecture;          ///< "ampere", "cdna3", "gaudi2"
  std::string architecture_version;  ///< "8.0" (compute capability), "gfx942"
  std::string serial;
  std::vector<DeviceFile> files;  ///< what its holder opens besides the driver's own files; of a
                                  ///< partition also those of its parent that the driver opens for
                                  ///< it; graphics files (/dev/dri) come last
  std::vector<Link> links;
  std::string parent;                  ///< id of the device that this is a partition of
  std::string part;                    ///< of a partition: how evidence names it within its device;
                                       ///< "3" names also the part "3/0"
  std::string profile;                 ///< of a partition: the name of its PartProfile
  std::optional<Placement> placement;  ///< of a partition
  std::vector<std::string> parts;      ///< addresses of its parts that Backend::List does not
                                       ///< return, because only a call about this device finds them
  std::vector<PartProfile> profiles;   ///< that this device can be divided into in its present
                                       ///< or another mode; empty: it cannot be divided
  std::vector<Mode> modes;
  std::map<std::string, std::string>
      details;  ///< further facts under the vendor's own names: "vbios", "brand", "pci.device-id"
  std::string withheld;  ///< why the driver's state keeps a healthy device from being offered, e.g.
                         ///< "MIG mode is enabled"; empty if it can be offered

  bool operator==(const Facts&) const = default;
};

Capacity CapacityOf(const Facts& device);

/// The number by which users know it: "3", "0:1"; empty if it has none.
std::string NumberOf(const Facts& device);

/// Whether users mean this device: by its id or its number.
bool IsNamed(const Facts& device, std::string_view wanted);

/// The driver behind a vendor's devices.
struct Driver {
  std::string vendor;
  std::string version;            ///< "550.54.15"
  std::string runtime_version;    ///< highest API version that it supports: "12.4"
  std::vector<DeviceFile> files;  ///< shared by all devices of the driver: control nodes
  std::vector<DeviceNumbers> guarded;
  bool operator==(const Driver&) const = default;
};

/// Where a piece of evidence comes from.
enum class EvidenceSource { kEvent, kKernelLog, kPoll };

/// One observation that counts for or against a device's health. node/health judges it by the
/// vendor's dialect.
struct Evidence {
  EvidenceSource source = EvidenceSource::kPoll;
  std::string device;  ///< id; empty where only the PCI address is known
  std::optional<PciAddress> pci;
  std::string kind;       ///< the vendor's family of codes: "xid", "recovery-action", "lost",
                          ///< "remap-failure", "ras"
  std::int64_t code = 0;  ///< number within the kind
  std::string text;       ///< the source's own text, for people
  bool standing = false;  ///< true: holds as long as each reading repeats it; false: happened once
  std::string part;  ///< the part of the device that it is about, as in Facts::part; empty: the
                     ///< device itself
  bool operator==(const Evidence&) const = default;
};

/// A process that the driver reports on a device.
struct DeviceProcess {
  std::int32_t pid = 0;
  base::Bytes memory;
  bool graphics_only = false;  ///< it only draws, as display servers do, and keeps no other process
                               ///< off the device
  bool operator==(const DeviceProcess&) const = default;
};

/// What the reading of a device says of a part of it.
struct PartReading {
  std::string address;  ///< as in Facts::parts
  std::vector<DeviceProcess> processes;
  bool operator==(const PartReading&) const = default;
};

/// One polled reading of a device's state. Measured values are in Sample (telemetry.h).
struct Reading {
  bool reachable = true;  ///< false: the device answered no call; `evidence` says why
  std::vector<Evidence> evidence;
  std::vector<DeviceProcess> processes;
  /// Whether the driver itself reports that a device needs no recovery; then the absence of
  /// evidence means healthy. False on old drivers.
  bool reports_recovery = false;
  /// The facts returned by the last Describe are out of date (a mode was changed, a fabric joined):
  /// call Describe again.
  bool facts_changed = false;
  /// Parts that are read with the device, so that they need no reading of their own.
  std::vector<PartReading> parts;
  bool operator==(const Reading&) const = default;
};

enum class HealthState {
  kHealthy,    ///< may be used
  kUnhealthy,  ///< present, must not be used
  kUnknown,    ///< not read yet, or a call about it hangs
  kGone,       ///< was present and is not any more
};
std::string_view ToString(HealthState state);

struct Health {
  HealthState state = HealthState::kUnknown;
  std::string reason;  ///< one sentence; empty while healthy
  base::WallTime since{};
  bool operator==(const Health&) const = default;
};

}  // namespace penstock::device
