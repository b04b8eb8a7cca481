#include "backend/amd/reading.h"

#include <algorithm>
#include <array>

#include "backend/amd/dialect/blocks.h"
#include "backend/amd/dialect/exporter_fields.h"
#include "backend/amd/dialect/kinds.h"
#include "backend/amd/dialect/quantities.h"
#include "base/core/strings.h"
#include "base/log.h"

namespace penstock::backend::amd {
namespace {

using Value = GpuMetrics::Value;
using Values = GpuMetrics::Values;

constexpr std::string_view kErrorCount = "_err_count";

/// Returns whether the GPU is in a reset, during which the files have no counts (Linux,
/// amdgpu_ras.c).
bool ReadCounts(const Machine& machine, const AmdGpu& gpu, ErrorCounts& counts) {
  bool in_reset = false;
  for (const std::string& name : machine.PciFolder(gpu.pci, "ras")) {
    if (!name.ends_with(kErrorCount)) continue;
    const std::string text = machine.PciFile(gpu.pci, "ras/" + name);
    if (const auto read = ParseRasCounts(text))
      counts[name.substr(0, name.size() - kErrorCount.size())] = *read;
    else
      in_reset = in_reset || text.starts_with("Query currently inaccessible");
  }
  return in_reset;
}

/// Returns whether a counter fell.
bool Raise(RasCounts& most, const RasCounts& now) {
  bool fell = false;
  for (std::uint64_t RasCounts::*which :
       {&RasCounts::uncorrectable, &RasCounts::correctable, &RasCounts::deferred}) {
    fell = fell || now.*which < most.*which;
    most.*which = std::max(most.*which, now.*which);
  }
  return fell;
}

bool UpdateCounts(const Machine& machine, const AmdGpu& gpu, MostErrors& most) {
  std::string folder = machine.PciFolderInstance(gpu.pci, "ras");
  if (!folder.empty() && folder != most.folder) most = {.folder = std::move(folder)};
  ErrorCounts now;
  // What some files say while others are inaccessible is not trusted: it would stay.
  if (ReadCounts(machine, gpu, now)) return true;
  for (const auto& [block, counts] : now) {
    if (!Raise(most.counts[block], counts) || most.fell) continue;
    most.fell = true;
    base::Log(base::kWarn,
              "error counters of a GPU fell without a reload of its driver: another program reads "
              "or clears them; the highest counts stay",
              {{"device", gpu.id}, {"block", block}});
  }
  return false;
}

Value Scaled(const Value& value, std::uint64_t factor, std::uint64_t divisor = 1) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 53;
  if (!value || *value > kMost) return std::nullopt;
  return *value / divisor * factor + *value % divisor * factor / divisor;
}

Value Total(const ErrorCounts& all, std::uint64_t RasCounts::*which) {
  if (all.empty()) return std::nullopt;
  std::uint64_t sum = 0;
  for (const auto& [block, counts] : all) sum += counts.*which;
  return sum;
}

/// "32.0 GT/s PCIe" in 0.1 GT/s.
Value LinkSpeed(std::string_view text) {
  const auto dot = text.find('.');
  const auto whole = base::ParseUint(text.substr(0, std::min(dot, text.find(' '))));
  constexpr std::uint64_t kMost = 10'000;
  if (!whole || *whole > kMost) return std::nullopt;
  const bool digit = dot != std::string_view::npos && dot + 1 < text.size() &&
                     text[dot + 1] >= '0' && text[dot + 1] <= '9';
  return *whole * 10 + (digit ? static_cast<std::uint64_t>(text[dot + 1] - '0') : 0);
}

struct Range {
  Value lowest, highest;
};

/// Lines "1: 2100Mhz *" of pp_dpm_<clock>; that of deep sleep, "S: 19Mhz", does not count (Linux,
/// drivers/gpu/drm/amd/pm, print_clk_levels).
Range ReadRange(std::string_view text) {
  Range range;
  for (const std::string& line : base::Split(text, '\n')) {
    const auto colon = line.find(':'), unit = line.find("Mhz");
    if (colon == std::string::npos || unit == std::string::npos || unit < colon ||
        line.starts_with("S"))
      continue;
    const auto value =
        base::ParseUint(base::Trim(std::string_view(line).substr(colon + 1, unit - colon - 1)));
    if (!value) continue;
    range.lowest = std::min(range.lowest.value_or(*value), *value);
    range.highest = std::max(range.highest.value_or(*value), *value);
  }
  return range;
}

constexpr std::array kClockFiles{
    std::pair{0, "pp_dpm_sclk"}, std::pair{kMemoryClockIndex, "pp_dpm_mclk"},
    std::pair{kVideoClockIndex, "pp_dpm_vclk"}, std::pair{kDataClockIndex, "pp_dpm_dclk"},
    std::pair{kSocClockIndex, "pp_dpm_socclk"}};

/// The clocks of all kinds, by the number of ClockType.
Values AllClocks(const GpuMetrics& metrics) {
  Values clocks(kClockIndices);
  const auto put = [&clocks](int first, int end, const Values& values) {
    for (std::size_t i = 0; i < values.size() && first < end; ++i, ++first)
      clocks[static_cast<std::size_t>(first)] = values[i];
  };
  put(0, kMemoryClockIndex, metrics.compute_clocks);
  put(kMemoryClockIndex, kVideoClockIndex, {metrics.memory_clock});
  put(kVideoClockIndex, kDataClockIndex, metrics.video_clocks);
  put(kDataClockIndex, kSocClockIndex, metrics.data_clocks);
  put(kSocClockIndex, kClockIndices, metrics.soc_clocks);
  return clocks;
}

Values OfPart(const GpuMetrics& metrics, std::size_t part, Values GpuMetrics::Part::*which) {
  return part < metrics.parts.size() ? metrics.parts[part].*which : Values();
}

/// What a partition measures itself; nothing: the GPU measures it.
std::optional<Values> OwnOfPart(GpuQuantity what, const GpuMetrics& metrics, std::size_t part) {
  using Part = GpuMetrics::Part;
  switch (what) {
    case GpuQuantity::kComputeBusy: return OfPart(metrics, part, &Part::compute_busy);
    case GpuQuantity::kVideoBusy: return OfPart(metrics, part, &Part::video_busy);
    case GpuQuantity::kJpegBusy: return OfPart(metrics, part, &Part::jpeg_busy);
    case GpuQuantity::kSlowPower: return OfPart(metrics, part, &Part::slow_power);
    case GpuQuantity::kSlowHeat: return OfPart(metrics, part, &Part::slow_heat);
    case GpuQuantity::kSlowIdle: return OfPart(metrics, part, &Part::slow_idle);
    case GpuQuantity::kSlowTotal: return OfPart(metrics, part, &Part::slow_total);
    default: return std::nullopt;
  }
}

/// Adds the values by number, or says that there are none.
void Add(device::QuantityId quantity, const Values& values, device::Sample& sample) {
  bool any = false;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) continue;
    sample.values.push_back(
        {.quantity = quantity, .link = static_cast<int>(i), .number = *values[i]});
    any = true;
  }
  if (!any) sample.unsupported.push_back(quantity);
}

/// The files of one GPU, each read at most once a sample.
class Source {
 public:
  Source(const Machine& machine, const AmdGpu& gpu, const MetricsOf& metrics)
      : machine_(machine), gpu_(gpu), read_metrics_(metrics) {}

  void Take(device::QuantityId quantity, GpuQuantity what, device::Sample& sample) {
    if (const auto values = Many(what)) {
      if (!unknown_now_) Add(quantity, *values, sample);
    } else if (const Value value = One(what)) {
      sample.values.push_back({.quantity = quantity, .number = *value});
    } else if (!unknown_now_) {
      sample.unsupported.push_back(quantity);
    }
    unknown_now_ = false;
  }

 private:
  /// The values of a quantity that has several; nothing: it has one.
  std::optional<Values> Many(GpuQuantity what) {
    switch (what) {
      case GpuQuantity::kHbmTemperatures: return Metrics().hbm;
      case GpuQuantity::kVideoUse: return Metrics().video_activity;
      case GpuQuantity::kJpegUse: return Metrics().jpeg_activity;
      case GpuQuantity::kClocks: return AllClocks(Metrics());
      case GpuQuantity::kLowestClocks: return ClockLimits(&Range::lowest);
      case GpuQuantity::kHighestClocks: return ClockLimits(&Range::highest);
      case GpuQuantity::kXgmiReceived: return Metrics().xgmi_received;
      case GpuQuantity::kXgmiSent: return Metrics().xgmi_sent;
      case GpuQuantity::kCorrectableOfBlocks: return OfBlocks(&RasCounts::correctable);
      case GpuQuantity::kUncorrectableOfBlocks: return OfBlocks(&RasCounts::uncorrectable);
      case GpuQuantity::kDeferredOfBlocks: return OfBlocks(&RasCounts::deferred);
      case GpuQuantity::kComputeBusy:
      case GpuQuantity::kVideoBusy:
      case GpuQuantity::kJpegBusy:
      case GpuQuantity::kSlowPower:
      case GpuQuantity::kSlowHeat:
      case GpuQuantity::kSlowIdle:
      case GpuQuantity::kSlowTotal: return OwnOfPart(what, Metrics(), 0);
      default: return std::nullopt;
    }
  }

  Value One(GpuQuantity what) {
    switch (what) {
      case GpuQuantity::kMemoryUsed: return Uint("mem_info_vram_used");
      case GpuQuantity::kMemoryTotal: return Uint("mem_info_vram_total");
      case GpuQuantity::kMemoryFree: return Free("mem_info_vram_total", "mem_info_vram_used");
      case GpuQuantity::kVisibleTotal: return Uint("mem_info_vis_vram_total");
      case GpuQuantity::kVisibleUsed: return Uint("mem_info_vis_vram_used");
      case GpuQuantity::kVisibleFree:
        return Free("mem_info_vis_vram_total", "mem_info_vis_vram_used");
      case GpuQuantity::kGttTotal: return Uint("mem_info_gtt_total");
      case GpuQuantity::kGttUsed: return Uint("mem_info_gtt_used");
      case GpuQuantity::kGttFree: return Free("mem_info_gtt_total", "mem_info_gtt_used");
      case GpuQuantity::kUtilization: {
        const Value activity = Metrics().compute_activity;
        return activity ? activity : Uint("gpu_busy_percent");
      }
      case GpuQuantity::kMemoryUtilization: {
        const Value activity = Metrics().memory_activity;
        return activity ? activity : Uint("mem_busy_percent");
      }
      case GpuQuantity::kPcieMaxSpeed: return LinkSpeed(File("max_link_speed"));
      case GpuQuantity::kCorrectable: return Total(Errors(), &RasCounts::correctable);
      case GpuQuantity::kUncorrectable: return Total(Errors(), &RasCounts::uncorrectable);
      case GpuQuantity::kDeferred: return Total(Errors(), &RasCounts::deferred);
      default: return OfMetrics(what, Metrics());
    }
  }

  static Value OfMetrics(GpuQuantity what, const GpuMetrics& metrics) {
    switch (what) {
      case GpuQuantity::kTemperature: return metrics.hotspot;
      case GpuQuantity::kMemoryTemperature: return metrics.memory_temperature;
      case GpuQuantity::kEdgeTemperature: return metrics.edge;
      case GpuQuantity::kPower: return Scaled(metrics.power, 1000);
      case GpuQuantity::kPowerNow:
        return metrics.average_power ? std::nullopt : Scaled(metrics.power, 1000);
      case GpuQuantity::kAveragePower:
        return metrics.average_power ? Scaled(metrics.power, 1000) : std::nullopt;
      case GpuQuantity::kEnergy:  // 2^-16 J
        return Scaled(metrics.energy, 1000, 65536);
      case GpuQuantity::kMicrojoules: return Scaled(metrics.energy, 15625, 1024);
      case GpuQuantity::kComputeClock: return metrics.compute_clock;
      case GpuQuantity::kMemoryClock: return metrics.memory_clock;
      case GpuQuantity::kMultimedia: return metrics.multimedia_activity;
      case GpuQuantity::kSocVoltage: return metrics.soc_voltage;
      case GpuQuantity::kGfxVoltage: return metrics.gfx_voltage;
      case GpuQuantity::kMemoryVoltage: return metrics.memory_voltage;
      case GpuQuantity::kMemoryBandwidth: return metrics.memory_bandwidth;
      case GpuQuantity::kPcieWidth: return metrics.pcie_width;
      case GpuQuantity::kPcieSpeed: return metrics.pcie_speed;
      case GpuQuantity::kPcieBandwidth: return metrics.pcie_bandwidth;
      case GpuQuantity::kPcieBandwidthTotal: return metrics.pcie_bandwidth_total;
      case GpuQuantity::kPcieReplays: return metrics.pcie_replays;
      case GpuQuantity::kPcieRecoveries: return metrics.pcie_recoveries;
      case GpuQuantity::kPcieRollovers: return metrics.pcie_rollovers;
      case GpuQuantity::kPcieNaksSent: return metrics.pcie_naks_sent;
      case GpuQuantity::kPcieNaksReceived: return metrics.pcie_naks_received;
      case GpuQuantity::kThrottleCount: return metrics.intervals;
      case GpuQuantity::kThrottleHot: return metrics.hot;
      case GpuQuantity::kThrottlePower: return metrics.over_power;
      case GpuQuantity::kThrottleSocket: return metrics.socket_hot;
      case GpuQuantity::kThrottleRegulators: return metrics.regulators_hot;
      case GpuQuantity::kThrottleMemory: return metrics.memory_hot;
      default: return std::nullopt;
    }
  }

  /// In whole megabytes, as AMD's tools count them before they subtract.
  Value Free(const char* total_file, const char* used_file) {
    const Value total = Uint(total_file), used = Uint(used_file);
    constexpr std::uint64_t kMegabyte = 1u << 20;
    if (!total || !used || *used > *total) return std::nullopt;
    return (*total / kMegabyte - *used / kMegabyte) * kMegabyte;
  }

  /// Of the clocks that there are.
  Values ClockLimits(Value Range::*which) {
    Values limits = AllClocks(Metrics());
    for (std::size_t kind = 0; kind < kClockFiles.size(); ++kind) {
      const auto [first, file] = kClockFiles[kind];
      const int end = kind + 1 < kClockFiles.size() ? kClockFiles[kind + 1].first : kClockIndices;
      const Value limit = ReadRange(File(file)).*which;
      for (int i = first; i < end; ++i)
        if (Value& one = limits[static_cast<std::size_t>(i)]) one = limit;
    }
    return limits;
  }

  Values OfBlocks(std::uint64_t RasCounts::*which) {
    const ErrorCounts& counts = Errors();
    Values values;
    for (const Block& block : kBlocks) {
      const auto found = counts.find(block.file);
      values.push_back(found == counts.end() ? Value() : Value(found->second.*which));
    }
    return values;
  }

  const std::string& File(const std::string& name) {
    const auto [file, is_new] = files_.try_emplace(name);
    if (is_new) file->second = machine_.PciFile(gpu_.pci, name);
    return file->second;
  }
  Value Uint(const char* name) { return base::ParseUint(File(name)); }

  const GpuMetrics& Metrics() {
    if (!metrics_) {
      auto parsed = read_metrics_();
      // Another version, or no such file, has no values at all; what cannot be read, as during a
      // reset, may be read later.
      unread_ = !parsed.ok() && parsed.error().code() != base::Code::kUnimplemented &&
                parsed.error().code() != base::Code::kNotFound;
      metrics_ = parsed.ok() ? *std::move(parsed) : GpuMetrics();
    }
    unknown_now_ = unknown_now_ || unread_;
    return *metrics_;
  }

  /// Those that can be read: during a reset the files say nothing.
  const ErrorCounts& Errors() {
    if (!counts_) in_reset_ = ReadCounts(machine_, gpu_, counts_.emplace());
    unknown_now_ = unknown_now_ || in_reset_;
    return *counts_;
  }

  const Machine& machine_;
  const AmdGpu& gpu_;
  const MetricsOf& read_metrics_;
  std::map<std::string, std::string> files_;
  std::optional<GpuMetrics> metrics_;
  std::optional<ErrorCounts> counts_;
  bool unread_ = false, in_reset_ = false;
  bool unknown_now_ = false;  // of the quantity in hand: it is missing only for the moment
};

}  // namespace

device::Reading ReadGpu(const Machine& machine, const AmdGpu& gpu, MostErrors& most,
                        bool& in_reset) {
  device::Reading reading;
  in_reset = UpdateCounts(machine, gpu, most);
  for (const auto& [block, counts] : most.counts) {
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

base::Result<GpuMetrics> ReadMetrics(const Machine& machine, const AmdGpu& gpu) {
  ASSIGN(const std::string bytes, machine.PciBytes(gpu.pci, "gpu_metrics"));
  auto parsed = ParseGpuMetrics(bytes);
  if (!parsed.ok())
    base::Log(base::kDebug, "measured values are skipped",
              {{"device", gpu.id}, {"why", parsed.error().message()}});
  return parsed;
}

device::Sample SampleGpu(const Machine& machine, const AmdGpu& gpu, const MetricsOf& metrics,
                         const device::SampleRequest& request) {
  device::Sample sample;
  Source source(machine, gpu, metrics);
  for (const device::QuantityId quantity : request.quantities)
    if (const auto what = GpuQuantityOf(quantity))
      source.Take(quantity, *what, sample);
    else
      sample.unsupported.push_back(quantity);
  return sample;
}

device::Sample SamplePart(unsigned part, const MetricsOf& metrics,
                          const device::SampleRequest& request) {
  device::Sample sample;
  std::optional<base::Result<GpuMetrics>> read;
  for (const device::QuantityId quantity : request.quantities) {
    const auto what = GpuQuantityOf(quantity);
    if (!what || !OwnOfPart(*what, {}, 0)) {
      sample.unsupported.push_back(quantity);  // the driver measures the GPU
      continue;
    }
    if (!read) read = metrics();
    if (read->ok()) Add(quantity, *OwnOfPart(*what, **read, part), sample);
  }
  return sample;
}

}  // namespace penstock::backend::amd
