#include "backend/nvidia/dialect/dialect.h"

#include <algorithm>
#include <cctype>

#include "backend/nvidia/dialect/auxiliary_classes.h"
#include "backend/nvidia/dialect/containers.h"
#include "backend/nvidia/dialect/dcgm/dcgm.h"
#include "backend/nvidia/dialect/kernel_driver.h"
#include "backend/nvidia/dialect/kernel_log.h"
#include "backend/nvidia/dialect/kinds.h"
#include "backend/nvidia/dialect/labels.h"
#include "backend/nvidia/dialect/mig_profile.h"
#include "backend/nvidia/dialect/quantities.h"
#include "backend/nvidia/dialect/xid.h"
#include "base/core/strings.h"
#include "device/kinds.h"

namespace penstock::backend::nvidia {
namespace {

constexpr std::int64_t kFallenOffTheBus = 79;

/// Rules without a kind are about XIDs: users know no other code.
constexpr device::EvidenceKind kEvidenceKinds[] = {
    {.name = kXid, .least = 1, .most = 999, .usual = true},
    {.name = kSxid, .least = 1, .most = 99'999},
    {.name = kRecoveryAction, .most = 99},
    {.name = kUnavailable},
    {.name = kLost},
    {.name = kResetRequired},
    {.name = kRemapPending},
    {.name = kRemapFailure},
    {.name = kEccUncorrectable},
    {.name = kPoison},
};

using device::Driver;
using device::Edits;
using device::Evidence;
using device::Facts;
using device::Severity;
using device::Verdict;

using Devices = std::span<const Facts* const>;

std::string Names(Devices devices, device::DeviceNames names = device::DeviceNames::kIds) {
  std::vector<std::string> all;
  for (const Facts* facts : devices)
    all.push_back(names == device::DeviceNames::kIds ? facts->id : NumberOf(*facts));
  return base::Join(all, ",");
}

void AddFiles(Edits& edits, const std::vector<device::DeviceFile>& files) {
  for (const device::DeviceFile& file : files) {
    if (file.path.starts_with("/dev/dri/"))
      continue;  // as in NVIDIA's plugin; CDI specifications have them where graphics is requested
    const Edits::File edit{file.path, file.path, "rw"};
    if (std::ranges::find(edits.files, edit) == edits.files.end()) edits.files.push_back(edit);
  }
}

std::vector<Edits::File> Files(Devices devices, const Driver& driver) {
  Edits edits;
  for (const Facts* facts : devices) AddFiles(edits, facts->files);
  if (!devices.empty()) AddFiles(edits, driver.files);
  return edits.files;
}

/// Resource names are Kubernetes qualified names, by convention in lower case.
std::string ModelResourceOf(const Facts& device) {
  std::string key = ModelKey(device.model);
  for (char& c : key)
    c = c == '_' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return "nvidia.com/" + (key.empty() ? "gpu" : key);
}

/// The device plugin's name (internal/resource/nvml-mig-device.go): "+" would not be valid. It has
/// none for compute instances that share a GPU instance, which have a name of the same form here.
std::string MigResource(std::string profile) {
  std::ranges::replace(profile, '+', '.');
  return "nvidia.com/mig-" + profile;
}

/// "The maximum number of clients (48) is lowered proportionally to the Compute Instance size" (MIG
/// user guide, "Application Considerations"). Of seven slices, which most models have, where the
/// driver does not say how many the GPU has.
int MaxClientsOf(const Facts& device, int of_whole) {
  constexpr std::uint64_t kMostSlices = 7;
  const auto number = [&](const char* name) -> std::uint64_t {
    const auto found = device.details.find(name);
    return found == device.details.end() ? 0 : base::ParseUint(found->second).value_or(0);
  };
  if (device.parent.empty()) return of_whole;
  const std::uint64_t own = std::max<std::uint64_t>(number(kMigSlicesOfCompute), 1);
  const std::uint64_t all = number(kMigSlicesOfAll);
  const std::uint64_t whole = all == 0 ? kMostSlices : all;
  return static_cast<int>(static_cast<std::uint64_t>(of_whole) * std::min(own, whole) / whole);
}

/// Until the GPU has joined, CUDA fails with cudaErrorSystemNotReady (802).
device::FabricPlace NvlinkFabric(const Facts& device) {
  using State = device::FabricPlace::State;
  constexpr char kRemedy[] =
      "start nvidia-fabricmanager in the driver's version, and look at its log";
  const auto found = device.details.find(kFabricState);
  if (found == device.details.end()) return {};
  if (found->second == kFabricJoined) return {.state = State::kJoined, .reason = {}, .remedy = {}};
  if (found->second == kFabricJoining)
    return {State::kJoining, "it has not joined the NVLink fabric yet", kRemedy};
  return {State::kFailed, "it could not join the NVLink fabric: " + found->second, kRemedy};
}

/// NVIDIA, "Multi-Process Service": clients per device. The device plugin (mps/device.go) compares
/// with 7.5 and so allows Volta only 16; it shares no MIG devices by MPS, which NVIDIA's driver
/// does (MIG user guide, "MIG with CUDA MPS").
std::string WhyNoMps(const Facts& device, const device::Shape& shape) {
  constexpr int kMaxClients = 48, kMaxBeforeVolta = 16;
  if (shape.sharing != device::Sharing::kServer) return "";
  const auto mig = std::ranges::find_if(
      device.modes, [](const device::Mode& mode) { return mode.name == "mig"; });
  if (device.parent.empty() && mig != device.modes.end() && mig->current == "enabled")
    return "MPS cannot share a GPU in MIG mode, only its MIG devices: create some, or disable MIG";
  const auto capability = base::Split(device.architecture_version, '.');
  const auto major = base::ParseInt(capability.front()), minor = base::ParseInt(capability.back());
  if (!major || !minor || *major < 3 || (*major == 3 && *minor < 5))
    return "a " + device.model + " (compute capability " + device.architecture_version +
           ") does not support MPS: use timeSlicing";
  const int most = MaxClientsOf(device, *major >= 7 ? kMaxClients : kMaxBeforeVolta);
  if (shape.shares > most)
    return std::to_string(shape.shares) + " shares exceed the number of MPS clients (" +
           std::to_string(most) + (device.parent.empty() ? "" : " of a " + device.profile) +
           "): configure fewer replicas";
  return "";
}

class NvidiaDialect final : public device::Dialect {
 public:
  std::string_view vendor() const override { return kVendor; }

  std::string_view resource() const override { return "nvidia.com/gpu"; }

  std::string ModelResource(const Facts& device) const override { return ModelResourceOf(device); }

  std::string PartResource(const Facts& part) const override { return MigResource(part.profile); }

  const device::PartTerms* part_terms() const override {
    static const device::PartTerms kTerms = {
        .mode = "mig",
        .on = "enabled",
        .off = "disabled",
        // of NVIDIA's MIG manager, as its states are
        .request_label = "nvidia.com/mig.config",
        .state_label = "nvidia.com/mig.config.state",
        .read_profile = [](std::string_view name) -> Result<std::string> {
          ASSIGN(const auto profile, ParseMigProfile(name));
          return ToString(profile);
        },
        // likewise
        .client_labels = {"nvidia.com/gpu.deploy.client", "nvidia.com/gpu.deploy.dcgm",
                          "nvidia.com/gpu.deploy.nvsm"},
        .paused = "paused-for-mig-change",
        .harmless_programs = {"nvidia-persistenced"},
        .program = "mig-manager",
        .has_naming_option = true};
    return &kTerms;
  }

  Result<const device::PartProfile*> FindProfile(
      std::string_view name, std::span<const device::PartProfile> profiles) const override {
    return FindMigProfile(name, profiles);
  }

  std::string WhyNotShared(const Facts& device, const device::Shape& shape) const override {
    return WhyNoMps(device, shape);
  }

  // NVIDIA_VISIBLE_DEVICES: NVIDIA container toolkit, "User guide"; "void" means a container
  // without GPUs.
  Edits ForContainer(Devices devices, const Driver& driver,
                     device::DeviceNames names) const override {
    return {{{"NVIDIA_VISIBLE_DEVICES", devices.empty() ? "void" : Names(devices, names)}},
            Files(devices, driver)};
  }

  // NVIDIA container toolkit, internal/config/image/cuda_image.go; how the device plugin uses it:
  // its internal/plugin/server.go.
  device::ListForms ContainerListForms() const override {
    return {.variable = "NVIDIA_VISIBLE_DEVICES",
            .nothing = "void",
            .folder = "/var/run/nvidia-container-devices",
            .classes = {{"gds", {"NVIDIA_GDS", "enabled", ""}},
                        {"gdrcopy", {"NVIDIA_GDRCOPY", "enabled", ""}},
                        {"imex", {"NVIDIA_IMEX_CHANNELS", "", "imex"}},
                        {"mofed", {"NVIDIA_MOFED", "enabled", ""}},
                        {"nvswitch", {"NVIDIA_NVSWITCH", "enabled", ""}}}};
  }

  // CUDA programming guide, "CUDA environment variables": only devices before an invalid index are
  // visible, so -1 hides all. An empty value also hides all, but is lost where environments are
  // passed on.
  Edits ForProcess(Devices devices, const Driver& driver) const override {
    return {{{"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
             {"CUDA_VISIBLE_DEVICES", devices.empty() ? "-1" : Names(devices)},
             {"NVIDIA_VISIBLE_DEVICES", devices.empty() ? "void" : Names(devices)}},
            Files(devices, driver)};
  }

  std::span<const device::Quantity> Quantities() const override { return TheQuantities(); }

  const device::Exporter* exporter() const override { return &DcgmExporter(); }

  std::string_view runtime_handler() const override { return "nvidia"; }

  std::string_view cdi_kind() const override { return kCdiKind; }

  std::vector<std::string> CdiNamesOf(const Facts& device,
                                      std::span<const device::CdiNames> strategies) const override {
    return CdiDeviceNames(device, strategies);
  }

  device::ContainerDriver DriverForContainers(const Driver& driver) const override {
    return ContainerDriverOf(driver);
  }

  std::vector<device::CdiClass> CdiClasses() const override { return AuxiliaryCdiClasses(); }

  std::vector<device::CdiPlatform> CdiPlatforms() const override { return OtherPlatforms(); }

  std::string_view config_label() const override { return "nvidia.com/device-plugin.config"; }

  std::string_view server_root() const override { return "/run/nvidia/mps"; }

  std::span<const device::EvidenceKind> EvidenceKinds() const override { return kEvidenceKinds; }

  Verdict Judge(const Evidence& evidence) const override {
    const auto& kind = evidence.kind;
    const auto text_or = [&](std::string_view otherwise) {
      return evidence.text.empty() ? std::string(otherwise) : evidence.text;
    };
    if (kind == kXid) {
      auto verdict = JudgeXid(evidence.code, evidence.text);
      verdict.silences = evidence.code == kFallenOffTheBus;
      return verdict;
    }
    if (kind == kRecoveryAction) return JudgeRecoveryAction(evidence.code);
    if (kind == kLost)
      return {Severity::kGone, "the GPU is lost: " + text_or("it does not answer"), true};
    if (kind == kResetRequired)
      return {Severity::kReset, "the driver reports that the GPU must be reset"};
    if (kind == kUnavailable)
      return {Severity::kReset, "the driver reports that the GPU is unavailable"};
    if (kind == kRemapFailure)
      return {Severity::kReset,
              "a memory row could not be remapped: the GPU may have to be replaced"};
    if (kind == kPoison && evidence.code != 0)
      return {Severity::kReset, "poisoned data that could not be contained"};
    if (kind == kPoison) return {Severity::kWarn, "poisoned data, contained"};
    if (kind == kRemapPending)
      return {Severity::kWarn, "a memory row will be remapped at the next reset"};
    if (kind == kEccUncorrectable)
      return {Severity::kWarn,
              "uncorrectable ECC errors since the last reset: " + std::to_string(evidence.code)};
    if (kind == device::kDriverLoaded || kind.starts_with(device::kResetCounter))
      return {Severity::kIgnore, text_or(kind)};
    if (kind == kRecoveryChanged)
      return {Severity::kIgnore, "the driver's recovery action changed"};
    if (kind == kSxid)
      return {Severity::kWarn,
              "SXID " + std::to_string(evidence.code) + " of an NVSwitch: " + text_or("no text")};
    return {Severity::kWarn, text_or(kind)};
  }

  std::vector<std::string> DriverPaths(const device::Paths& paths) const override {
    const auto below = [](const std::string& root, std::string_view path) {
      return (root == "/" ? "" : root) + std::string(path);
    };
    std::vector<std::string> found{below(paths.sysfs_root, "/module/nvidia"),
                                   below(paths.dev_root, "/dev/nvidiactl")};
    // Its entries are the GPUs that are bound to the driver.
    found.push_back(below(paths.sysfs_root, "/bus/pci/drivers/nvidia"));
    // For a dev root that is itself a /dev.
    found.push_back(below(paths.dev_root, "/nvidiactl"));
    // The GPU of a Jetson and that of Windows are on no PCI bus.
    found.push_back(below(paths.sysfs_root, "/module/nvgpu"));
    found.push_back(below(paths.dev_root, "/dev/dxg"));
    found.push_back(below(paths.dev_root, "/dxg"));
    if (!paths.library.empty()) {
      found.push_back(paths.library);
      return found;
    }
    for (const std::string_view folder : kLibraryFolders)
      found.push_back(
          below(paths.driver_root, std::string(folder) + "/" + std::string(kLibraryName)));
    return found;
  }

  device::DriverSign SignOfDriver(const device::Paths& paths) const override {
    return {.absent = NoLibrary(paths)};
  }

  std::string_view compute_program() const override { return "penstock-vectoradd"; }

  const device::KernelDriver* kernel_driver() const override { return &TheKernelDriver(); }

  std::optional<Evidence> FromKernelLog(std::string_view line) const override {
    return ParseKernelLine(line);
  }

  device::FabricPlace FabricOf(const Facts& device) const override { return NvlinkFabric(device); }

  std::uint16_t pci_vendor() const override { return kPciVendor; }

  std::map<std::string, std::string> Labels(const device::LabelFacts& facts) const override {
    return NodeLabels(facts);
  }
};

}  // namespace

const device::Dialect& TheDialect() {
  static const NvidiaDialect dialect;
  return dialect;
}

std::string NoLibrary(const device::Paths& paths) {
  if (!paths.library.empty())
    return "there is no NVIDIA driver library at " + paths.library +
           ": correct --nvml-library, or install the driver";
  const std::string where =
      paths.driver_root == "/" ? "on this machine" : "below " + paths.driver_root;
  return "there is no NVIDIA driver library (" + std::string(kLibraryName) + ") " + where +
         ": install the NVIDIA driver, or specify its location with --driver-root or "
         "--nvml-library";
}

}  // namespace penstock::backend::nvidia
