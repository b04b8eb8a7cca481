// The second seam to a vendor: pure tables from the model to the names its users know. No I/O, no state, any thread.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "device/backend.h"
#include "device/container.h"
#include "device/exporter.h"
#include "device/model.h"
#include "device/telemetry.h"

namespace penstock::device {

/// What a consumer needs to use devices: the vendor-neutral form of Allocate's answer, of a process's environment, of CDI edits.
struct Edits {
  struct File {
    std::string container_path;  ///< as the consumer opens it
    std::string host_path;       ///< below the machine's dev root: "/dev/nvidia0"
    std::string permissions;     ///< of "rwm"
    bool operator==(const File&) const = default;
  };
  struct Mount {
    std::string container_path;
    std::string host_path;  ///< as the host calls it
    bool read_only = false;
    bool operator==(const Mount&) const = default;
  };
  std::map<std::string, std::string> environment;
  std::vector<File> files;
  std::vector<Mount> mounts;
  bool operator==(const Edits&) const = default;
};

/// How devices are named to a container's runtime.
enum class DeviceNames { kIds, kIndices };

/// How containers are told their devices on the ways that are older than CDI.
struct ListForms {
  std::string variable;  ///< of their environment: "NVIDIA_VISIBLE_DEVICES"
  std::string nothing;   ///< its value for a container that gets its devices on another way: "void"
  std::string folder;    ///< mounts of /dev/null below it name devices: "/var/run/nvidia-container-devices"; empty: there is no such way
  /// Of devices of another class (CdiClass).
  struct Class {
    std::string variable;  ///< "NVIDIA_GDS"
    std::string value;     ///< "enabled"; empty: the names of the devices, joined by commas
    std::string folder;    ///< below `folder`: "imex"; empty: mounts do not name them
  };
  std::map<std::string, Class, std::less<>> classes;  ///< by CdiClass::mode
};

/// What a piece of evidence asks for (reference/xid.md; the classes are ours, vendors map onto them).
enum class Severity {
  kIgnore,  ///< counted
  kWarn,    ///< told, the device stays in use
  kDrain,   ///< no new work
  kReset,   ///< unhealthy until it was reset
  kGone,    ///< unhealthy until a reboot, a driver reload or hands
};
std::string_view ToString(Severity severity);

struct Verdict {
  Severity severity = Severity::kWarn;
  std::string reason;     ///< one sentence for people: "XID 79: GPU has fallen off the bus"
  bool silences = false;  ///< the device answers nothing while it lasts, so that an answer says that it is over
};

/// How a device is offered, as far as labels speak of it.
struct LabelShare {
  Shape shape;
  bool renamed = false;   ///< its resource's name is not the usual one, so that it tells the sharing by itself
  std::string isolation;  ///< device::ToString(Isolation)
};

/// What the labels of a node about one vendor's devices are made of. Borrowed for the time of the call.
struct LabelFacts {
  std::vector<const Facts*> devices;          ///< those that are there, in order of index
  std::vector<LabelShare> shares;             ///< of each of the devices; empty: all are whole
  const Driver* driver = nullptr;             ///< null: none
  std::vector<std::string_view> pci_configs;  ///< configuration spaces of its accelerators as far as they could be read, driver or not
  std::string machine;                        ///< the machine's product name; empty: not known
  std::optional<std::int64_t> timestamp;      ///< seconds since 1970 that a label shall tell
};

/// What a vendor calls things.
class Dialect {
 public:
  virtual ~Dialect() = default;

  virtual std::string_view vendor() const = 0;

  /// The extended resource under which whole devices are offered: "nvidia.com/gpu".
  virtual std::string_view resource() const = 0;

  /// The extended resource for this device where each model has its own: "nvidia.com/a100-sxm4-40gb".
  virtual std::string ModelResource(const Facts& device) const = 0;

  /// Why this device cannot be shared so, with what can be done instead; empty where it can.
  virtual std::string WhyNotShared(const Facts& device, const Shape& shape) const = 0;

  /// For a container that gets exactly these devices, told to it by these names.
  virtual Edits ForContainer(std::span<const Facts* const> devices, const Driver& driver, DeviceNames names) const = 0;

  /// Where ForContainer says the devices' names, and how else they could be said.
  virtual ListForms ContainerListForms() const = 0;

  /// For a process on this machine that gets exactly these devices; no devices: what hides all of them.
  virtual Edits ForProcess(std::span<const Facts* const> devices, const Driver& driver) const = 0;

  /// The vendor's and class' part of its devices' CDI names: "nvidia.com/gpu".
  virtual std::string_view cdi_kind() const = 0;

  /// A device's names in CDI, without kind: "0", "GPU-5a…", for a partition of `parent` "0:1". Null: the device is no partition, or nothing
  /// is known of what it is a partition of; it has no names then that need it.
  virtual std::vector<std::string> CdiNamesOf(const Facts& device, const Facts* parent, std::span<const CdiNames> strategies) const = 0;

  /// What a container needs of this driver besides device files; nothing where user space is all in the image.
  virtual ContainerDriver DriverForContainers(const Driver& driver) const = 0;

  /// Further classes of devices that may be on a machine with this vendor's.
  virtual std::vector<CdiClass> CdiClasses() const = 0;

  /// Kinds of machines with a driver that lies elsewhere than DriverForContainers says, the surest told first.
  virtual std::vector<CdiPlatform> CdiPlatforms() const = 0;

  /// What evidence means, by the vendor's documentation.
  virtual Verdict Judge(const Evidence& evidence) const = 0;

  /// What the vendor's devices can be asked for; a quantity's place is its id.
  virtual std::span<const Quantity> Quantities() const = 0;

  /// The metrics of the vendor's own exporter; null: it has none.
  virtual const Exporter* exporter() const = 0;

  /// Paths whose coming, going or changing means that the driver came, went or changed: its library, its module, its control device.
  virtual std::vector<std::string> DriverPaths(const Paths& paths) const = 0;

  /// Evidence in a line of the kernel's log; nothing where the line says nothing of this vendor's devices.
  virtual std::optional<Evidence> FromKernelLog(std::string_view line) const = 0;

  /// The vendor's number in PCI configuration spaces.
  virtual std::uint16_t pci_vendor() const = 0;

  /// What its users select nodes on: label → value, in the charset of labels; values may be longer than a label's may be. The order of the
  /// devices must not change a label; where they differ in model, labels that speak of one model speak of the same one each time.
  virtual std::map<std::string, std::string> Labels(const LabelFacts& facts) const = 0;
};

}  // namespace penstock::device
