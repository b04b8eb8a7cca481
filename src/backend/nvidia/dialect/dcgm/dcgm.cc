// Labels and facts. Sources: dcgm-exporter 4.5.3-4.8.4 (internal/pkg/rendermetrics,
// internal/pkg/collector, internal/pkg/transformation).
#include "backend/nvidia/dialect/dcgm/dcgm.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "backend/nvidia/dialect/dcgm/dcgm_fields.h"
#include "backend/nvidia/dialect/kinds.h"
#include "base/core/strings.h"

namespace penstock::backend::nvidia {
namespace {

using device::CounterRow;
using device::ExporterField;
using device::ExporterLabels;
using device::ExporterStyle;
using device::Facts;
using device::FieldSource;
using device::HealthWatch;

std::string Address(const Facts& device) {
  // As NVML's busId: eight digits of domain, upper case.
  std::string text = device.pci ? "0000" + device::ToString(*device.pci) : "";
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string Model(const Facts& device, const ExporterStyle& style) {
  if (!style.blanks_replaced) return device.model;
  std::string text;
  bool between = false;
  for (const char c : device.model) {
    const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
    if (!blank && between && !text.empty()) text += '-';
    if (!blank) text += c;
    between = blank;
  }
  return text;
}

std::string Detail(const Facts& device, const char* name) {
  const auto found = device.details.find(name);
  return found == device.details.end() ? "" : found->second;
}

/// "12.4" in the form of the CUDA driver: 12040.
std::string CudaNumber(const std::string& version) {
  const auto dot = version.find('.');
  const auto major = base::ParseUint(version.substr(0, dot));
  const auto minor =
      dot == std::string::npos ? std::nullopt : base::ParseUint(version.substr(dot + 1));
  return major && minor ? std::to_string(*major * 1000 + *minor * 10) : "";
}

/// NVML's version is the driver's, prefixed with CUDA's major version.
std::string NvmlVersion(const device::Driver& driver) {
  const std::string major = driver.runtime_version.substr(0, driver.runtime_version.find('.'));
  return major.empty() || driver.version.empty() ? "" : major + "." + driver.version;
}

/// "8.0" in DCGM's packed form: 0x80000.
std::string Capability(const std::string& version) {
  const auto dot = version.find('.');
  const auto major = base::ParseUint(version.substr(0, dot));
  const auto minor =
      dot == std::string::npos ? std::nullopt : base::ParseUint(version.substr(dot + 1));
  return major && minor ? std::to_string(*major << 16 | *minor) : "";
}

// nvmlGpuP2PStatus_t.
constexpr std::int64_t kLinked = 0, kNotLinked = 5;

std::string LinkStatus(std::int64_t value) { return value == kLinked ? "OK" : "NotSupported"; }

// DCGM's watches (dcgm_structs.h, dcgmHealthSystems_enum) and errors (dcgm_errors.h) as its
// exporter writes them. The other watches are not supported: they depend on DCGM's own thresholds
// for clocks, power, temperatures and the InfoROM.
constexpr std::string_view kPcie = "PCIE", kNvlink = "NVLINK", kMem = "MEM";
constexpr std::array kWatches{kPcie, kNvlink, kMem};
constexpr std::string_view kXidError = "DCGM_FR_XID_ERROR";

/// The XIDs of a part of the GPU (xid.cc has their names).
struct WatchedXids {
  int first = 0, last = 0;
  HealthWatch watch;
};
constexpr std::array kWatchedXids{
    WatchedXids{48, 48, {kMem, "DCGM_FR_VOLATILE_DBE_DETECTED"}},
    WatchedXids{63, 63, {kMem, "DCGM_FR_PENDING_ROW_REMAP"}},
    WatchedXids{64, 64, {kMem, "DCGM_FR_ROW_REMAP_FAILURE"}},
    WatchedXids{74, 74, {kNvlink, "DCGM_FR_NVLINK_ERROR_CRITICAL"}},
    WatchedXids{79, 79, {kPcie, kXidError}},
    WatchedXids{92, 92, {kMem, kXidError}},
    WatchedXids{94, 94, {kMem, kXidError}},
    WatchedXids{95, 95, {kMem, "DCGM_FR_UNCONTAINED_ERROR"}},
    WatchedXids{136, 136, {kNvlink, kXidError}},
    WatchedXids{140, 140, {kMem, kXidError}},
    WatchedXids{144, 150, {kNvlink, kXidError}},
    WatchedXids{155, 155, {kNvlink, kXidError}},
    WatchedXids{160, 161, {kMem, kXidError}},
    WatchedXids{166, 166, {kNvlink, kXidError}},
    WatchedXids{167, 167, {kPcie, kXidError}},
    WatchedXids{168, 168, {kMem, kXidError}},
    WatchedXids{170, 170, {kNvlink, kXidError}},
    WatchedXids{171, 172, {kMem, kXidError}},
    WatchedXids{176, 176, {kPcie, kXidError}},
    WatchedXids{185, 185, {kMem, kXidError}},
};

class Dcgm final : public device::Exporter {
 public:
  std::span<const ExporterField> fields() const override { return DcgmFields(); }

  std::vector<CounterRow> DefaultRows() const override {
    const auto rows = DcgmDefaultRows();
    return {rows.begin(), rows.end()};
  }

  std::string Fact(const ExporterField& field, const Facts& device,
                   const device::Driver* driver) const override {
    switch (field.number) {
      case 1: return driver != nullptr ? driver->version : "";
      case 2: return driver != nullptr ? NvmlVersion(*driver) : "";
      case 5: return driver != nullptr ? CudaNumber(driver->runtime_version) : "";
      case 50: return device.model;
      case 51: return Detail(device, "brand");
      case 52: return device.index >= 0 ? std::to_string(device.index) : "";
      case 53: return device.serial;
      case 54: return device.id;
      case 55: return device.files.empty() ? "" : std::to_string(device.files.front().minor);
      case 56: return Detail(device, kInforomOem);
      case 57: return Address(device);
      case 63: return Capability(device.architecture_version);
      case 80: return Detail(device, kInforomEcc);
      case 81: return Detail(device, kInforomPower);
      case 82: return Detail(device, kInforomImage);
      case 85: return Detail(device, "vbios");
      case 172: return Detail(device, kFabricCluster);
      default: return "";
    }
  }

  ExporterLabels LabelsOf(const Facts& device, const Facts* parent, int link,
                          const ExporterStyle& style) const override {
    const Facts& gpu = parent != nullptr ? *parent : device;
    const std::string index = std::to_string(gpu.index);
    ExporterLabels labels;
    if (link >= 0) {
      labels = {{"nvlink", std::to_string(link)},
                {"gpu", index},
                {"gpu_uuid", gpu.id},
                {"pci_bus_id", Address(gpu)},
                {"device", "nvidia" + index},
                {"model_name", Model(gpu, style)}};
    } else {
      labels = {{"gpu", index},
                {style.old_names ? "uuid" : "UUID", gpu.id},
                {"pci_bus_id", Address(gpu)},
                {"device", "nvidia" + index},
                {"modelName", Model(gpu, style)}};
    }
    if (!device.profile.empty()) {
      labels.emplace_back("GPU_I_PROFILE", device.profile);
      labels.emplace_back("GPU_I_ID", Detail(device, kGpuInstance));
    }
    // The exporter has always written the host label of links in lower case.
    const bool lower = link >= 0 && style.hostname_labels.size() == 1;
    for (const std::string& label : style.hostname_labels)
      labels.emplace_back(lower ? "hostname" : label, style.hostname);
    return labels;
  }

  // DCGM (dcgmlib/src/DcgmCacheManager.cpp) asks the GPU for an instance's fields, except for those
  // of memory. Fields of profiling (DcgmGpmManager.cpp) are the instance's or nothing.
  bool IsOfWhole(const ExporterField& field, const Facts&) const override {
    const auto within = [&field](int first, int last) {
      return field.number >= first && field.number <= last;
    };
    const bool memory = within(90, 93) || within(250, 254);
    const bool profiling = within(1001, 1199);
    return !memory && !profiling;
  }

  ExporterLabels HolderLabels(const device::ExporterHolder& holder,
                              const ExporterStyle& style) const override {
    ExporterLabels labels{
        {style.old_names ? "container_name" : "container", std::string(holder.container)},
        {style.old_names ? "pod_namespace" : "namespace", std::string(holder.namespace_name)},
        {style.old_names ? "pod_name" : "pod", std::string(holder.pod)},
        {"pod_uid", std::string(holder.pod_uid)},
        {"vgpu", std::string(holder.share)},
        {"hpc_job", std::string(holder.job)}};
    std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
    std::ranges::sort(labels);  // the exporter's template goes through a map
    return labels;
  }

  // The exporter's hpc.go: of an instance, only the file with both numbers counts.
  std::string JobFile(const Facts& device, const Facts* whole) const override {
    if (whole == nullptr) return device.index < 0 ? "" : std::to_string(device.index);
    const std::string instance = Detail(device, kGpuInstance);
    return whole->index < 0 || instance.empty() ? ""
                                                : std::to_string(whole->index) + "." + instance;
  }

  ExporterLabels ErrorLabels(std::int64_t code) const override {
    return {{"err_code", std::to_string(code)}, {"err_msg", std::string(DcgmErrorText(code))}};
  }

  ExporterLabels PartLabels(const ExporterField& field, std::string_view part,
                            base::Duration window, std::int64_t value) const override {
    ExporterLabels labels;
    const bool errors =
        field.source == FieldSource::kErrorsInWindow || field.source == FieldSource::kErrorsTotal;
    const bool reasons =
        field.source == FieldSource::kReasonsInWindow || field.source == FieldSource::kReasonsTotal;
    if (field.source == FieldSource::kPeers)
      labels = {{"link_status", LinkStatus(value)}, {"peer_gpu", std::string(part)}};
    if (field.source == FieldSource::kErrorsInWindow ||
        field.source == FieldSource::kReasonsInWindow)
      labels.emplace_back(
          "window_size_in_ms",
          std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(window).count()));
    if ((errors || reasons) && !part.empty())
      labels.emplace_back(errors ? "xid" : "clock_event", part);
    return labels;
  }

  std::span<const std::string_view> watches() const override { return kWatches; }

  HealthWatch WatchOf(std::string_view kind, std::int64_t code) const override {
    if (kind == kRemapPending) return {kMem, "DCGM_FR_PENDING_ROW_REMAP"};
    if (kind == kRemapFailure) return {kMem, "DCGM_FR_ROW_REMAP_FAILURE"};
    if (kind == kEccUncorrectable) return {kMem, "DCGM_FR_VOLATILE_DBE_DETECTED"};
    if (kind == kPoison) return {kMem, code != 0 ? "DCGM_FR_UNCONTAINED_ERROR" : ""};
    if (kind == kLost) return {kPcie, ""};
    if (kind != kXid) return {};
    for (const WatchedXids& xids : kWatchedXids)
      if (code >= xids.first && code <= xids.last) return xids.watch;
    return {"", kXidError};
  }

  std::string_view UnknownError() const override { return "DCGM_FR_UNKNOWN"; }

  ExporterLabels WatchLabels(const HealthWatch& watch) const override {
    return {{"health_error_code", watch.error.empty() ? "DCGM_FR_OK" : std::string(watch.error)},
            {"health_watch", watch.watch.empty() ? "ALL" : std::string(watch.watch)}};
  }

  // The value of nvmlDeviceGetP2PStatus with NVML_P2P_CAPS_INDEX_NVLINK, derived from the links
  // between two GPUs.
  std::int64_t PeerValue(const device::Link& link) const override {
    return link.fabric_lanes > 0 ? kLinked : kNotLinked;
  }

  std::span<const std::pair<std::uint64_t, std::string_view>> reasons() const override {
    static constexpr std::pair<std::uint64_t, std::string_view> kReasons[] = {
        {0x1, "gpu_idle"},    {0x2, "clocks_setting"},  {0x4, "power_cap"},
        {0x8, "hw_slowdown"}, {0x10, "sync_boost"},     {0x20, "sw_thermal"},
        {0x40, "hw_thermal"}, {0x80, "hw_power_brake"}, {0x100, "display_clocks"},
    };
    return kReasons;
  }

  std::string_view NewLabel(std::string_view label) const override {
    const ExporterField* field = FindDcgmField(label);
    return field != nullptr && field->name == label && !field->new_name.empty() ? field->new_name
                                                                                : label;
  }
};

}  // namespace

const device::Exporter& DcgmExporter() {
  static const Dcgm exporter;
  return exporter;
}

}  // namespace penstock::backend::nvidia
