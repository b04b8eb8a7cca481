#include "backend/amd/reading.h"

#include <functional>

#include "backend/amd/dialect/kinds.h"
#include "backend/amd/dialect/quantities.h"
#include "backend/amd/gpu_metrics.h"
#include "base/core/strings.h"
#include "base/log.h"

namespace penstock::backend::amd {
namespace {

using device::Evidence;
using device::EvidenceSource;
using Value = std::optional<std::uint64_t>;

constexpr std::string_view kErrorCount = "_err_count";

Evidence Standing(const AmdGpu& gpu, std::string_view kind, std::uint64_t code, std::string text) {
  return {.source = EvidenceSource::kPoll,
          .device = gpu.id,
          .pci = gpu.pci,
          .kind = std::string(kind),
          .code = static_cast<std::int64_t>(code & INT64_MAX),
          .text = std::move(text),
          .standing = true};
}

/// Returns whether the GPU is in a reset: Linux, amdgpu_ras.c, "Query currently inaccessible".
bool UpdateCounts(const Machine& machine, const AmdGpu& gpu, LastCounts& last) {
  bool in_reset = false;
  for (const std::string& name : machine.PciFolder(gpu.pci, "ras")) {
    if (!name.ends_with(kErrorCount)) continue;
    const std::string text = machine.PciFile(gpu.pci, "ras/" + name);
    if (const auto counts = ParseRasCounts(text))
      last[name.substr(0, name.size() - kErrorCount.size())] = *counts;
    else
      in_reset = in_reset || text.starts_with("Query currently inaccessible");
  }
  return in_reset;
}

Value Uint(const Machine& machine, const AmdGpu& gpu, const char* file) {
  return base::ParseUint(machine.PciFile(gpu.pci, file));
}

Value Scaled(const Value& value, std::uint64_t factor, std::uint64_t divisor = 1) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 53;
  if (!value || *value > kMost) return std::nullopt;
  return *value / divisor * factor + *value % divisor * factor / divisor;
}

Value Total(const LastCounts& last, std::uint64_t RasCounts::*which) {
  if (last.empty()) return std::nullopt;
  std::uint64_t sum = 0;
  for (const auto& [block, counts] : last) sum += counts.*which;
  return sum;
}

/// The files of one GPU, each read at most once a sample.
class Source {
 public:
  Source(const Machine& machine, const AmdGpu& gpu) : machine_(machine), gpu_(gpu) {}

  Value Get(GpuQuantity what) {
    switch (what) {
      case GpuQuantity::kMemoryUsed: return Uint(machine_, gpu_, "mem_info_vram_used");
      case GpuQuantity::kUtilization: {
        const Value activity = Metrics().compute_activity;
        return activity ? activity : Uint(machine_, gpu_, "gpu_busy_percent");
      }
      case GpuQuantity::kMemoryUtilization: {
        const Value activity = Metrics().memory_activity;
        return activity ? activity : Uint(machine_, gpu_, "mem_busy_percent");
      }
      case GpuQuantity::kTemperature: return Metrics().hotspot;
      case GpuQuantity::kMemoryTemperature: return Metrics().memory_temperature;
      case GpuQuantity::kPower: return Scaled(Metrics().power, 1000);
      case GpuQuantity::kEnergy:  // 2^-16 J
        return Scaled(Metrics().energy, 1000, 65536);
      case GpuQuantity::kComputeClock: return Metrics().compute_clock;
      case GpuQuantity::kMemoryClock: return Metrics().memory_clock;
      case GpuQuantity::kPcieWidth: return Metrics().pcie_width;
      case GpuQuantity::kCorrectable: return Total(Counts(), &RasCounts::correctable);
      case GpuQuantity::kUncorrectable: return Total(Counts(), &RasCounts::uncorrectable);
    }
    return std::nullopt;
  }

 private:
  const GpuMetrics& Metrics() {
    if (metrics_) return *metrics_;
    metrics_.emplace();
    const auto bytes = machine_.PciBytes(gpu_.pci, "gpu_metrics");
    if (!bytes.ok()) return *metrics_;
    auto parsed = ParseGpuMetrics(*bytes);
    if (parsed.ok())
      metrics_ = *parsed;
    else
      base::Log(base::kDebug, "measured values are skipped",
                {{"device", gpu_.id}, {"why", parsed.error().message()}});
    return *metrics_;
  }

  const LastCounts& Counts() {
    if (!counts_) UpdateCounts(machine_, gpu_, counts_.emplace());
    return *counts_;
  }

  const Machine& machine_;
  const AmdGpu& gpu_;
  std::optional<GpuMetrics> metrics_;
  std::optional<LastCounts> counts_;
};

}  // namespace

device::Reading ReadGpu(const Machine& machine, const AmdGpu& gpu, LastCounts& last) {
  device::Reading reading;
  if (UpdateCounts(machine, gpu, last)) reading.evidence.push_back(Standing(gpu, kInReset, 0, ""));
  for (const auto& [block, counts] : last) {
    if (counts.uncorrectable > 0)
      reading.evidence.push_back(Standing(gpu, kRasUncorrectable, counts.uncorrectable, block));
    if (counts.deferred > 0)
      reading.evidence.push_back(Standing(gpu, kRasDeferred, counts.deferred, block));
  }
  const BadPages pages = ParseBadPages(machine.PciFile(gpu.pci, "ras/gpu_vram_bad_pages"));
  if (pages.failed > 0)
    reading.evidence.push_back(
        Standing(gpu, kPagesFailed, static_cast<std::uint64_t>(pages.failed), ""));
  if (pages.pending > 0)
    reading.evidence.push_back(
        Standing(gpu, kPagesPending, static_cast<std::uint64_t>(pages.pending), ""));
  return reading;
}

device::Sample SampleGpu(const Machine& machine, const AmdGpu& gpu,
                         const device::SampleRequest& request) {
  device::Sample sample;
  Source source(machine, gpu);
  for (const device::QuantityId quantity : request.quantities) {
    const auto what = GpuQuantityOf(quantity);
    const Value value = what ? source.Get(*what) : std::nullopt;
    if (value)
      sample.values.push_back({.quantity = quantity, .number = *value});
    else
      sample.unsupported.push_back(quantity);
  }
  return sample;
}

}  // namespace penstock::backend::amd
