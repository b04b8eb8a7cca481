// Interface to a vendor's dialect: pure tables that map the model to the names that the vendor's
// users know. No I/O, no state, any thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "device/backend.h"
#include "device/container.h"
#include "device/exporter.h"
#include "device/kernel_driver.h"
#include "device/model.h"
#include "device/telemetry.h"

namespace penstock::device {

/// What a holder needs to use devices: the vendor-neutral form of the answer to Allocate, of a
/// process's environment and of CDI edits.
struct Edits {
  struct File {
    std::string container_path;  ///< the path that the holder opens
    std::string host_path;       ///< below the machine's dev root: "/dev/nvidia0"
    std::string permissions;     ///< some of "rwm"
    bool operator==(const File&) const = default;
  };
  struct Mount {
    std::string container_path;
    std::string host_path;  ///< the path on the host
    bool read_only = false;
    bool operator==(const Mount&) const = default;
  };
  std::map<std::string, std::string> environment;
  std::vector<File> files;
  std::vector<Mount> mounts;
  bool operator==(const Edits&) const = default;
};

/// How devices are named to the container runtime.
enum class DeviceNames { kIds, kIndices };

/// How a container names its devices by the mechanisms that are older than CDI.
struct ListForms {
  std::string variable;  ///< environment variable of the container: "NVIDIA_VISIBLE_DEVICES"
  std::string nothing;   ///< its value for a container that gets its devices by another mechanism:
                         ///< "void"
  std::string folder;    ///< mounts of /dev/null below it name devices:
                         ///< "/var/run/nvidia-container-devices"; empty: there is no such mechanism
  /// The same for devices of another class (CdiClass).
  struct Class {
    std::string variable;  ///< "NVIDIA_GDS"
    std::string value;     ///< "enabled"; empty: the device names, joined by commas
    std::string folder;    ///< below `folder`: "imex"; empty: mounts cannot name these devices
  };
  std::map<std::string, Class, std::less<>> classes;  ///< by CdiClass::mode
};

/// What a piece of evidence requires (docs/health.md). The classes are Penstock's; vendors map
/// their codes onto them.
enum class Severity {
  kIgnore,  ///< counted only
  kWarn,    ///< reported; the device stays in use
  kDrain,   ///< no new allocations
  kReset,   ///< unhealthy until it is reset
  kGone,    ///< unhealthy until a reboot, a driver reload or an on-site repair
};
std::string_view ToString(Severity severity);

/// A kind of evidence for which users may configure an action, and the range of its codes.
struct EvidenceKind {
  std::string_view name;  ///< Evidence::kind
  std::int64_t least = 0, most = 999'999'999;
  bool usual = false;  ///< users mean it where they name no kind; at most one of all vendors'
};

struct Verdict {
  Severity severity = Severity::kWarn;
  std::string reason;  ///< one sentence for people: "XID 79: GPU has fallen off the bus"
  bool silences =
      false;  ///< the device answers no call while this lasts, so any answer shows that it is over
};

/// How a device is offered, as far as labels describe it.
struct LabelShare {
  Shape shape;
  bool renamed =
      false;  ///< its resource does not have the usual name, and so shows the sharing by itself
  std::string isolation;  ///< device::ToString(Isolation)
};

/// Under which names the parts of devices are offered.
enum class PartNames { kNone, kOfDevices, kOfProfiles };

/// How a layout that a label of the Node asked for stands.
enum class LayoutStage { kPending, kSuccess, kFailed };

/// Why a layout is not applied.
enum class LayoutFailure {
  kNone,
  kNoFile,
  kNotReadable,
  kUnknown,
  kImpossible,
  kNoComputeMode,  ///< it has a word that is no mode of computing
  kNoMemoryMode,   ///< or of memory
  kNotDone
};

/// Input for the labels of a node about one vendor's devices. All references are borrowed for the
/// duration of the call.
struct LabelFacts {
  std::vector<const Facts*> devices;          ///< the devices that are present, ordered by index
  std::vector<LabelShare> shares;             ///< one for each device; empty: all devices are whole
  std::vector<const Facts*> parts;            ///< of these devices, likewise
  std::vector<LabelShare> part_shares;        ///< one for each part
  PartNames part_names = PartNames::kNone;    ///< how the parts are offered
  const Driver* driver = nullptr;             ///< null: there is no driver
  std::vector<std::string_view> pci_configs;  ///< PCI configuration spaces of the accelerators as
                                              ///< far as they could be read, with or without a
                                              ///< driver
  std::string machine;                        ///< the machine's product name; empty: unknown
  std::optional<std::int64_t> timestamp;      ///< seconds since 1970 for the timestamp label
};

/// The value of PartTerms::client_labels.
inline constexpr char kClientsRun[] = "true";

/// A vendor's words for parts of its devices.
struct PartTerms {
  std::string mode;           ///< of the devices that are divided: "mig"
  std::string on;             ///< its value while a device is divided: "enabled"; empty: all values
                              ///< but `off`, each of which has its own parts
  std::string off;            ///< and while it is whole: "disabled"
  std::string request_label;  ///< of a Node: names the layout that users want
  std::string state_label;    ///< of a Node: how that stands, see `state_words`
  /// The canonical form of a profile's name, wherever there is such a profile; an error says what
  /// is wrong with the name.
  std::function<base::Result<std::string>(std::string_view name)> read_profile;
  /// Of a Node: labels by whose value kClientsRun the cluster runs programs that hold devices, and
  /// the value that stops them while devices are divided.
  std::vector<std::string> client_labels = {};
  std::string paused = {};
  /// Names of programs that may hold devices while these are divided.
  std::vector<std::string> harmless_programs = {};
  /// The driver makes the parts when the mode is set, and layouts say the mode of each device. No
  /// part is created or destroyed by itself.
  bool by_mode = false;
  std::map<LayoutStage, std::string> state_words = {{LayoutStage::kPending, "pending"},
                                                    {LayoutStage::kSuccess, "success"},
                                                    {LayoutStage::kFailed, "failed"}};
  /// Reason of an Event about a layout besides those of all vendors; empty: none. `changed`: a
  /// device was divided for it.
  std::function<std::string(LayoutStage stage, LayoutFailure failure, bool changed)> event = {};
  /// Distinguishes the files and changes of this vendor's layout from those of others; empty: those
  /// of the first releases.
  std::string kept_as = {};
  /// Of a Node: a new value applies the layout of `request_label` again; empty: there is none.
  std::string again_label = {};
  /// The vendor's program in whose place the agent divides devices, and whose files it reads
  /// (api::compat::FindLayoutProgram); empty: there is none, and all layouts are made from the
  /// devices.
  std::string program = {};
  /// An option that only this vendor's users know says how its parts are named
  /// (api::NodeConfig::profiled_parts).
  bool has_naming_option = false;
};

/// How a device stands in the fabric that links it with others of its kind.
struct FabricPlace {
  enum class State {
    kNone,     ///< it has no fabric, or does not report it
    kJoining,  ///< it can be used with others only once it has joined
    kJoined,
    kFailed,
  };
  State state = State::kNone;
  std::string reason;  ///< why it has not joined, one sentence
  std::string remedy;
};

/// By what one sees without a worker that there is no driver.
struct DriverSign {
  std::string path;    ///< exists wherever a driver is; empty: where the machine has the vendor's
                       ///< devices, only a worker can find out
  std::string absent;  ///< what is reported without a worker: one sentence, with what to do
};

/// The names and tables of one vendor.
class Dialect {
 public:
  virtual ~Dialect() = default;

  virtual std::string_view vendor() const = 0;

  /// The extended resource that offers whole devices: "nvidia.com/gpu".
  virtual std::string_view resource() const = 0;

  /// The extended resource of this device if each model has its own: "nvidia.com/a100-sxm4-40gb".
  virtual std::string ModelResource(const Facts& device) const = 0;

  /// The extended resource of a part with a profile, if each profile has its own:
  /// "nvidia.com/mig-1g.5gb".
  virtual std::string PartResource(const Facts& part) const = 0;

  /// The extended resource of a whole device, if each profile of parts has its own.
  virtual std::string WholeResource(const Facts&) const { return std::string(resource()); }

  /// How its users know parts to be named where the configuration does not say.
  virtual PartNames usual_part_names() const { return PartNames::kOfProfiles; }

  /// The words for parts; null: its devices are not divided.
  virtual const PartTerms* part_terms() const { return nullptr; }

  /// The profile, of those of a device, that a user's name means: drivers differ in how they spell
  /// it. kInvalidArgument: it is no name of a profile. kNotFound: the device has none that it
  /// means.
  virtual Result<const PartProfile*> FindProfile(std::string_view name,
                                                 std::span<const PartProfile> profiles) const = 0;

  /// Why this device cannot have this shape, and what to do instead; empty if it can.
  virtual std::string WhyNotShared(const Facts& device, const Shape& shape) const = 0;

  /// Edits for a container that gets exactly these devices, named in this form.
  virtual Edits ForContainer(std::span<const Facts* const> devices, const Driver& driver,
                             DeviceNames names) const = 0;

  /// Where ForContainer puts the device names, and the other forms that name devices.
  virtual ListForms ContainerListForms() const = 0;

  /// Edits for a process on this machine that gets exactly these devices. With no devices: edits
  /// that hide all of them.
  virtual Edits ForProcess(std::span<const Facts* const> devices, const Driver& driver) const = 0;

  /// What a process that has devices of other vendors, too, needs besides, so that a variable of
  /// theirs hides none of these.
  virtual std::map<std::string, std::string> AmongOthers(std::span<const Facts* const>) const {
    return {};
  }

  /// The name under which container engines know the runtime that serves its users; empty: they
  /// have none.
  virtual std::string_view runtime_handler() const = 0;

  /// The vendor and class part of the CDI names of its devices: "nvidia.com/gpu".
  virtual std::string_view cdi_kind() const = 0;

  /// A device's CDI names, without kind: "0", "GPU-5a…"; for a partition, "0:1".
  virtual std::vector<std::string> CdiNamesOf(const Facts& device,
                                              std::span<const CdiNames> strategies) const = 0;

  /// What a container needs of this driver besides device files; nothing if the image contains all
  /// of the user space.
  virtual ContainerDriver DriverForContainers(const Driver& driver) const = 0;

  /// Further classes of devices that a machine with this vendor's devices may have.
  virtual std::vector<CdiClass> CdiClasses() const = 0;

  /// Kinds of machines whose driver is not where DriverForContainers says, most certain first.
  virtual std::vector<CdiPlatform> CdiPlatforms() const = 0;

  /// The kinds of evidence for which users may configure an action.
  virtual std::span<const EvidenceKind> EvidenceKinds() const = 0;

  /// The label of a Node by whose value its users choose the node's configuration; empty: they know
  /// none.
  virtual std::string_view config_label() const { return {}; }

  /// The folder of its sharing servers' pipes and logs where none is configured, as the agent sees
  /// it; empty: they have one among the files of the running agent.
  virtual std::string_view server_root() const { return {}; }

  /// What the evidence means, by the vendor's documentation.
  virtual Verdict Judge(const Evidence& evidence) const = 0;

  /// The quantities that the vendor's devices can measure; the index of a quantity is its id.
  virtual std::span<const Quantity> Quantities() const = 0;

  /// The metrics of the vendor's own exporter; null if it has none.
  virtual const Exporter* exporter() const = 0;

  /// Paths that appear, disappear or change with the driver: its library, its module, its control
  /// device. On a machine without PCI functions of the vendor, a worker is started only if one of
  /// them is there.
  virtual std::vector<std::string> DriverPaths(const Paths& paths) const = 0;

  virtual DriverSign SignOfDriver(const Paths&) const { return {}; }

  /// The driver in the kernel, on hosts and in driver containers; null: no container installs it.
  virtual const KernelDriver* kernel_driver() const { return nullptr; }

  /// The program beside the agent that computes on one device and compares the result: PROGRAM
  /// --driver-root ROOT --device ID, with these exit statuses: 0 it is right, 3 others use the
  /// device, 4 the driver lacks the library for it, else the last line of its output says why it is
  /// not. Empty: there is none.
  virtual std::string_view compute_program() const { return {}; }

  /// The evidence in a line of the kernel's log; nothing if the line does not concern this vendor's
  /// devices.
  virtual std::optional<Evidence> FromKernelLog(std::string_view line) const = 0;

  /// How the device stands in its fabric, from its facts.
  virtual FabricPlace FabricOf(const Facts&) const { return {}; }

  /// The vendor's number in PCI configuration spaces.
  virtual std::uint16_t pci_vendor() const = 0;

  /// The labels by which users select nodes: label → value, in the character set of labels; values
  /// may be longer than a label's limit. The order of the devices must not change a label. If the
  /// models differ, labels that describe one model must describe the same one each time.
  virtual std::map<std::string, std::string> Labels(const LabelFacts& facts) const = 0;
};

/// The dialect of a vendor; null if the agent does not know the vendor.
using DialectOf = std::function<const Dialect*(std::string_view vendor)>;

}  // namespace penstock::device
