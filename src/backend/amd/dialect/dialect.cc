// AMD's names, as ROCm's device plugin, container toolkit and documentation have them.
#include "device/dialect.h"

#include <algorithm>

#include "backend/amd/dialect/exporter.h"
#include "backend/amd/dialect/kernel_log.h"
#include "backend/amd/dialect/kinds.h"
#include "backend/amd/dialect/labels.h"
#include "backend/amd/dialect/mode_terms.h"
#include "backend/amd/dialect/quantities.h"
#include "base/core/strings.h"
#include "device/kinds.h"

namespace penstock::backend::amd {
namespace {

using base::Code;
using base::Error;
using base::Result;
using device::Driver;
using device::Edits;
using device::Evidence;
using device::Facts;
using device::Severity;
using device::Verdict;

using Devices = std::span<const Facts* const>;

constexpr char kCdiKind[] = "amd.com/gpu";

constexpr device::EvidenceKind kEvidenceKinds[] = {
    {.name = "ras"},  // configurations of 0.1.0 may name it; nothing reports it
    {.name = kRasUncorrectable},
    {.name = kRasDeferred},
    {.name = kPagesPending},
    {.name = kPagesFailed},
    {.name = kInReset},
    {.name = kPartitionsMissing},
    {.name = kFatalError},
    {.name = kUncorrectableError},
    {.name = kPoisonConsumed},
    {.name = kHardwareError},
    {.name = kResetBegun},
    {.name = kResetDone},
    {.name = kResetFailed},
    {.name = kMemoryLost},
    {.name = kLost},
    {.name = kSchedulerTimeout},
    {.name = kRingTimeout},
    {.name = kFenceFallback},
    {.name = kWedged},
};

void AddFile(Edits& edits, const device::DeviceFile& file) {
  const Edits::File edit{file.path, file.path, "rw"};
  if (std::ranges::find(edits.files, edit) == edits.files.end()) edits.files.push_back(edit);
}

/// /dev/kfd once, and of each device the card and the render node (k8s-device-plugin, Allocate).
/// No variable: programs see the devices whose files they can open, and HIP also obeys variables
/// of other vendors.
Edits FilesOnly(Devices devices, const Driver& driver) {
  Edits edits;
  if (devices.empty()) return edits;
  for (const device::DeviceFile& file : driver.files) AddFile(edits, file);
  for (const Facts* device : devices)
    for (const device::DeviceFile& file : device->files) AddFile(edits, file);
  return edits;
}

std::string Numbered(const Facts& device) {
  const auto found = device.details.find(kNumber);
  return found == device.details.end() ? "" : found->second;
}

std::string ResourceOfModel(const std::string& model) {
  std::string name;
  for (const char c : base::ToLower(model)) {
    const bool fits = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (fits || (!name.empty() && name.back() != '-')) name += fits ? c : '-';
  }
  if (name.starts_with("amd-")) name.erase(0, 4);
  constexpr std::size_t kMaxName = 63;
  name.resize(std::min(name.size(), kMaxName));
  while (name.ends_with('-')) name.pop_back();
  return "amd.com/" + (name.empty() ? "gpu" : name);
}

class AmdDialect final : public device::Dialect {
 public:
  std::string_view vendor() const override { return kVendor; }
  std::string_view resource() const override { return kCdiKind; }
  std::string ModelResource(const Facts& device) const override {
    return ResourceOfModel(device.model);
  }
  /// "amd.com/cpx_nps4", and "amd.com/spx_nps1" of a whole GPU that can be divided: the plugin's
  /// resource_naming_strategy=mixed (k8s-device-plugin, internal/pkg/amdgpu).
  std::string PartResource(const Facts& part) const override {
    const std::string modes = PartitionModes(part);
    return modes.empty() ? kCdiKind : "amd.com/" + modes;
  }
  std::string WholeResource(const Facts& device) const override { return PartResource(device); }
  /// Its default is resource_naming_strategy=single.
  device::PartNames usual_part_names() const override { return device::PartNames::kOfDevices; }
  const device::PartTerms* part_terms() const override { return &TheModeTerms(); }
  Result<const device::PartProfile*> FindProfile(
      std::string_view name, std::span<const device::PartProfile>) const override {
    return Error(Code::kInvalidArgument, "\"" + std::string(name) +
                                             "\": AMD's GPUs are divided by their mode, not by "
                                             "profiles");
  }
  std::string WhyNotShared(const Facts& device, const device::Shape& shape) const override {
    return shape.sharing == device::Sharing::kServer
               ? "AMD has no sharing server for a " + device.model + ": use timeSlicing"
               : "";
  }
  Edits ForContainer(Devices devices, const Driver& driver, device::DeviceNames) const override {
    return FilesOnly(devices, driver);
  }
  /// ROCm, container-toolkit.
  device::ListForms ContainerListForms() const override {
    return {.variable = "AMD_VISIBLE_DEVICES", .nothing = "void", .folder = "", .classes = {}};
  }
  Edits ForProcess(Devices devices, const Driver& driver) const override {
    return FilesOnly(devices, driver);
  }
  /// HIP takes CUDA_VISIBLE_DEVICES where HIP_VISIBLE_DEVICES is empty (ROCm, clr,
  /// rocclr/device/rocm/rocdevice.cpp, Device::init). It numbers the devices that it can open.
  std::map<std::string, std::string> AmongOthers(Devices devices) const override {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < devices.size(); ++i) all.push_back(std::to_string(i));
    return {{"HIP_VISIBLE_DEVICES", base::Join(all, ",")}};
  }
  /// ROCm, container-toolkit, cmd/amd-ctk/runtime/configure.
  std::string_view runtime_handler() const override { return "amd"; }
  std::string_view cdi_kind() const override { return kCdiKind; }
  std::vector<std::string> CdiNamesOf(const Facts& device,
                                      std::span<const device::CdiNames> strategies) const override {
    std::vector<std::string> names;
    for (const device::CdiNames strategy : strategies) {
      std::string name = strategy == device::CdiNames::kUuid ? device.id : Numbered(device);
      if (!name.empty()) names.push_back(std::move(name));
    }
    return names;
  }
  /// Images have ROCm in them.
  device::ContainerDriver DriverForContainers(const Driver&) const override { return {}; }
  std::vector<device::CdiClass> CdiClasses() const override { return {}; }
  std::vector<device::CdiPlatform> CdiPlatforms() const override { return {}; }

  std::span<const device::EvidenceKind> EvidenceKinds() const override { return kEvidenceKinds; }
  Verdict Judge(const Evidence& evidence) const override {
    if (evidence.source == device::EvidenceSource::kKernelLog) return JudgeLine(evidence);
    const std::string count = std::to_string(evidence.code);
    if (evidence.kind == kRasUncorrectable)
      return {Severity::kReset, count + " uncorrectable errors in block " + evidence.text +
                                    " since the driver was loaded"};
    if (evidence.kind == kRasDeferred)
      return {Severity::kWarn, count + " errors in block " + evidence.text +
                                   " whose data was marked as bad and not used yet"};
    if (evidence.kind == kPagesFailed)
      return {Severity::kReset, count + " bad pages of memory could not be taken out of use"};
    if (evidence.kind == kPagesPending)
      return {Severity::kWarn, count + " bad pages of memory wait to be taken out of use"};
    if (evidence.kind == kInReset)
      return {Severity::kDrain, evidence.text.empty()
                                    ? "the GPU is being reset"
                                    : "the GPU is being reset together with " + evidence.text +
                                          ", in whose hive it is"};
    return {Severity::kWarn, evidence.text.empty() ? evidence.kind : evidence.text};
  }

  std::span<const device::Quantity> Quantities() const override { return TheQuantities(); }
  const device::Exporter* exporter() const override { return &TheExporter(); }
  std::vector<std::string> DriverPaths(const device::Paths& paths) const override {
    return {paths.sysfs_root + "/module/amdgpu", paths.sysfs_root + "/class/kfd"};
  }
  device::DriverSign SignOfDriver(const device::Paths& paths) const override {
    const std::string module = paths.sysfs_root + "/module/amdgpu";
    return {module, "AMD's driver is not loaded (no " + module +
                        "): run \"modprobe amdgpu\", or install the driver for this kernel"};
  }
  std::optional<Evidence> FromKernelLog(std::string_view line) const override {
    return ParseKernelLine(line);
  }
  std::uint16_t pci_vendor() const override { return kPciVendor; }
  std::map<std::string, std::string> Labels(const device::LabelFacts& facts) const override {
    return NodeLabels(facts);
  }
};

}  // namespace

const device::Dialect& TheDialect() {
  static const AmdDialect dialect;
  return dialect;
}

}  // namespace penstock::backend::amd
