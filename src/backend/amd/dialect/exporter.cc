// Labels: ROCm, device-metrics-exporter (pkg/amdgpu/gpuagent/gpuagent_gpu_metrics.go,
// populateLabelsFromGPU; docs/configuration/configmap.md). A label whose value is not known is
// there with an empty one, as in the exporter; Prometheus drops it.
#include "backend/amd/dialect/exporter.h"

#include <algorithm>
#include <cctype>

#include "backend/amd/dialect/exporter_fields.h"
#include "backend/amd/dialect/kinds.h"
#include "base/core/strings.h"

namespace penstock::backend::amd {
namespace {

using device::CounterRow;
using device::ExporterField;
using device::ExporterLabels;
using device::ExporterStyle;
using device::Facts;
using device::FieldSource;

std::string DetailOf(const Facts& device, const char* name) {
  const auto found = device.details.find(name);
  return found == device.details.end() ? "" : found->second;
}

/// "cpx", "nps4"; "none" of a GPU that cannot be divided.
std::string PartitionType(const Facts& gpu, const char* mode) {
  const auto found = std::ranges::find(gpu.modes, mode, &device::Mode::name);
  return found == gpu.modes.end() || found->current.empty() ? "none"
                                                            : base::ToLower(found->current);
}

/// The UUID that AMD's library makes of the unique_id, the PCI device id and the partition's number
/// (amdsmi, uuid.c, amdsmi_uuid_gen): of a whole GPU with ff in place of the number, as in its
/// releases so far. Empty where the GPU has no unique_id.
std::string Uuid(const Facts& device) {
  constexpr std::string_view kBefore = "GPU-";
  constexpr std::size_t kDigits = 16;
  const std::string_view id = device.id;
  if (!id.starts_with(kBefore) || id.size() < kBefore.size() + kDigits) return "";
  const std::string_view serial = id.substr(kBefore.size(), kDigits);
  if (!std::ranges::all_of(serial, [](unsigned char c) { return std::isxdigit(c) != 0; }))
    return "";
  const auto part = base::ParseUint(device.part);
  constexpr char kHex[] = "0123456789abcdef";
  std::string number = "ff";
  if (part && *part < 256) number = {kHex[*part / 16], kHex[*part % 16]};
  std::string uuid(serial.substr(0, 2));
  uuid += number + DetailOf(device, kDeviceId) + "-0000-1000-80";
  return uuid.append(serial.substr(2, 2)).append("-").append(serial.substr(4));
}

class AmdExporter final : public device::Exporter {
 public:
  AmdExporter() {
    for (const ExportedField& one : ExportedFields()) fields_.push_back(one.field);
  }

  std::span<const ExporterField> fields() const override { return fields_; }

  /// All that it can have, as without a configuration. It has no counters: all are gauges.
  std::vector<CounterRow> DefaultRows() const override {
    std::vector<CounterRow> rows;
    for (const ExportedField& one : ExportedFields())
      if (one.field.source != FieldSource::kUnavailable && one.field.source != FieldSource::kFact)
        rows.push_back({std::string(one.field.name), "gauge", std::string(one.help)});
    return rows;
  }

  std::string Fact(const ExporterField& field, const Facts& device,
                   const device::Driver* driver) const override {
    if (field.name == "gpu_uuid") return Uuid(device);
    if (field.name == "card_series") return device.model;
    if (field.name == "card_vendor") {
      const std::string vendor = DetailOf(device, kManufacturer);
      return vendor.empty() ? "Advanced Micro Devices, Inc. [AMD/ATI]" : vendor;
    }
    if (field.name == "driver_version") return driver != nullptr ? driver->version : "";
    if (field.name == "vbios_version") return DetailOf(device, "vbios");
    return "";
  }

  ExporterLabels LabelsOf(const Facts& device, const Facts* whole, int,
                          const ExporterStyle& style) const override {
    const Facts& gpu = whole != nullptr ? *whole : device;
    const std::string number = DetailOf(gpu, kProductNumber);
    ExporterLabels labels{
        {"gpu_id", DetailOf(device, kNumber)},
        {"gpu_partition_id", device.part.empty() ? "0" : device.part},
        {"gpu_compute_partition_type", PartitionType(gpu, kComputePartition)},
        {"gpu_memory_partition_type", PartitionType(gpu, kMemoryPartition)},
        {"card_model", number.empty() ? gpu.model : number},
        {"serial_number", gpu.serial},
    };
    const ExporterLabels of_node = NodeLabels(style);
    labels.insert(labels.end(), of_node.begin(), of_node.end());
    return labels;
  }

  ExporterLabels NodeLabels(const ExporterStyle& style) const override {
    return {{"hostname", style.hostname}};
  }

  /// As in AMD's GPU agent, the first partition has what is measured of the whole GPU.
  bool IsOfWhole(const ExporterField&, const Facts& part) const override {
    return part.part == "0";
  }

  ExporterLabels HolderLabels(const device::ExporterHolder& holder,
                              const ExporterStyle&) const override {
    ExporterLabels labels{{"pod", std::string(holder.pod)},
                          {"namespace", std::string(holder.namespace_name)},
                          {"container", std::string(holder.container)},
                          {"pod_uuid", std::string(holder.pod_uid)},
                          {"job_id", std::string(holder.job)}};
    std::erase_if(labels, [](const auto& label) { return label.second.empty(); });
    return labels;
  }

  std::string JobFile(const Facts&, const Facts*) const override { return ""; }
  ExporterLabels ErrorLabels(std::int64_t) const override { return {}; }

  ExporterLabels PartLabels(const ExporterField& field, std::string_view part, base::Duration,
                            std::int64_t) const override {
    if (!field.index) return {};
    const auto& all = ExportedFields();
    const std::string_view index = all[static_cast<std::size_t>(field.number)].index;
    ExporterLabels labels{{std::string(index), std::string(part)}};
    if (index == "clock_index")
      labels.emplace_back("clock_type",
                          ClockType(static_cast<int>(base::ParseUint(part).value_or(0))));
    return labels;
  }

  std::span<const std::string_view> watches() const override { return {}; }
  device::HealthWatch WatchOf(std::string_view, std::int64_t) const override { return {}; }
  std::string_view UnknownError() const override { return ""; }
  ExporterLabels WatchLabels(const device::HealthWatch&) const override { return {}; }
  std::int64_t PeerValue(const device::Link&) const override { return 0; }
  std::span<const std::pair<std::uint64_t, std::string_view>> reasons() const override {
    return {};
  }
  std::string_view NewLabel(std::string_view label) const override { return label; }

  /// config.json.
  bool has_settings() const override { return true; }

  std::optional<int> NumberOf(const Facts& device) const override {
    const auto number = base::ParseUint(DetailOf(device, kNumber));
    return number && *number < 1u << 20 ? std::optional(static_cast<int>(*number)) : std::nullopt;
  }

 private:
  std::vector<ExporterField> fields_;
};

}  // namespace

const device::Exporter& TheExporter() {
  static const AmdExporter exporter;
  return exporter;
}

}  // namespace penstock::backend::amd
