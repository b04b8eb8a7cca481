// Sources: dcgm-exporter 4.5.3-4.8.2 (etc/*.csv, internal/pkg/rendermetrics, internal/pkg/collector), DCGM 4.6 (dcgmlib/dcgm_fields.h),
// go-dcgm (pkg/dcgm/const_fields.go) for the names of 4.7.
#include "vendor/nvidia/dialect/dcgm.h"

#include <algorithm>
#include <cctype>

namespace penstock::vendor::nvidia {
namespace {

using device::CounterRow;
using device::ExporterField;
using device::ExporterLabels;
using device::ExporterStyle;
using device::Facts;
using device::FieldSource;

// clang-format off
constexpr ExporterField kFields[] = {
    {.name = "DCGM_FI_DEV_SM_CLOCK", .new_name = "DCGM_FI_DEV_SM_CLOCK_HERTZ", .number = 100, .from = "clock.sm", .new_divisor = 1e-6},
    {.name = "DCGM_FI_DEV_MEM_CLOCK", .new_name = "DCGM_FI_DEV_MEMORY_CLOCK_HERTZ", .number = 101, .from = "clock.memory", .new_divisor = 1e-6},
    {.name = "DCGM_FI_DEV_GPU_TEMP", .new_name = "DCGM_FI_DEV_GPU_TEMP_CELSIUS", .number = 150, .from = "temperature.gpu"},
    {.name = "DCGM_FI_DEV_POWER_USAGE", .new_name = "DCGM_FI_DEV_BOARD_POWER_WATTS", .number = 155, .from = "power", .divisor = 1000,
     .new_divisor = 1000, .real = true, .new_real = true},
    {.name = "DCGM_FI_DEV_GPU_UTIL", .new_name = "DCGM_FI_DEV_GPU_UTIL_RATIO", .number = 203, .from = "utilization.gpu", .new_divisor = 100, .new_real = true},
    {.name = "DCGM_FI_DEV_FB_FREE", .number = 251, .from = "memory.free", .divisor = 1048576},
    {.name = "DCGM_FI_DEV_FB_USED", .number = 252, .from = "memory.used", .divisor = 1048576},
};
// clang-format on

std::string Address(const Facts& device) {
  // As NVML's busId: eight digits of domain, upper case.
  std::string text = device.pci ? "0000" + device::ToString(*device.pci) : "";
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

// nvmlGpuP2PStatus_t.
constexpr std::int64_t kLinked = 0, kNotLinked = 5;

std::string LinkStatus(std::int64_t value) { return value == kLinked ? "OK" : "NotSupported"; }

class Dcgm final : public device::Exporter {
 public:
  std::span<const ExporterField> fields() const override { return kFields; }

  std::vector<CounterRow> DefaultRows() const override {
    return {{"DCGM_FI_DEV_SM_CLOCK", "gauge", "SM clock frequency (in MHz)."},
            {"DCGM_FI_DEV_MEM_CLOCK", "gauge", "Memory clock frequency (in MHz)."},
            {"DCGM_FI_DEV_GPU_TEMP", "gauge", "GPU temperature (in C)."},
            {"DCGM_FI_DEV_POWER_USAGE", "gauge", "Power draw (in W)."},
            {"DCGM_FI_DEV_GPU_UTIL", "gauge", "GPU utilization (in %)."},
            {"DCGM_FI_DEV_FB_FREE", "gauge", "Framebuffer memory free (in MiB)."},
            {"DCGM_FI_DEV_FB_USED", "gauge", "Framebuffer memory used (in MiB)."}};
  }

  std::string Fact(const ExporterField&, const Facts&, const device::Driver*) const override { return ""; }

  ExporterLabels LabelsOf(const Facts& device, const Facts*, int, const ExporterStyle& style) const override {
    ExporterLabels labels{{"gpu", std::to_string(device.index)},
                          {style.old_names ? "uuid" : "UUID", device.id},
                          {"pci_bus_id", Address(device)},
                          {"device", "nvidia" + std::to_string(device.index)},
                          {"modelName", device.model}};
    if (!style.hostname.empty()) labels.emplace_back(style.hostname_label, style.hostname);
    return labels;
  }

  ExporterLabels HolderLabels(const device::ExporterHolder& holder, const ExporterStyle& style) const override {
    ExporterLabels labels{{style.old_names ? "container_name" : "container", std::string(holder.container)},
                          {style.old_names ? "pod_namespace" : "namespace", std::string(holder.namespace_name)},
                          {style.old_names ? "pod_name" : "pod", std::string(holder.pod)},
                          {"pod_uid", std::string(holder.pod_uid)},
                          {"vgpu", std::string(holder.share)}};
    std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
    return labels;
  }

  ExporterLabels ErrorLabels(std::int64_t code) const override { return {{"err_code", std::to_string(code)}}; }

  ExporterLabels PartLabels(const ExporterField& field, std::string_view part, base::Duration window, std::int64_t value) const override {
    ExporterLabels labels;
    if (field.source == FieldSource::kPeers) labels = {{"link_status", LinkStatus(value)}, {"peer_gpu", std::string(part)}};
    if (field.source == FieldSource::kHealth)  // DCGM's own watches, and which of them failed, are DCGM's alone
      labels = {{"health_error_code", value == 0 ? "DCGM_FR_OK" : "DCGM_FR_UNKNOWN"}, {"health_watch", "ALL"}};
    if (field.source != FieldSource::kErrorsInWindow && field.source != FieldSource::kReasonsInWindow) return labels;
    labels.emplace_back("window_size_in_ms", std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(window).count()));
    if (!part.empty()) labels.emplace_back(field.source == FieldSource::kErrorsInWindow ? "xid" : "clock_event", part);
    return labels;
  }

  // Of nvmlDeviceGetP2PStatus with NVML_P2P_CAPS_INDEX_NVLINK: what follows from the links that two GPUs have.
  std::int64_t PeerValue(const device::Link& link) const override { return link.fabric_lanes > 0 ? kLinked : kNotLinked; }

  std::span<const std::pair<std::uint64_t, std::string_view>> reasons() const override { return {}; }

  std::string_view NewLabel(std::string_view label) const override { return label; }
};

}  // namespace

const device::Exporter& DcgmExporter() {
  static const Dcgm exporter;
  return exporter;
}

}  // namespace penstock::vendor::nvidia
