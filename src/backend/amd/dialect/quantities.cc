#include "backend/amd/dialect/quantities.h"

#include <array>

namespace penstock::backend::amd {
namespace {

using device::Pace;
using device::Unit;

struct Row {
  device::Quantity quantity;
  GpuQuantity what;
};

constexpr double kMaxCelsius = 250, kMaxMegahertz = 20000, kMaxMilliwatts = 1e7;

// clang-format off
constexpr std::array kRows{
    Row{{.key = "memory.used", .unit = Unit::kBytes, .family = "accelerator_memory_used_bytes", .source = "mem_info_vram_used"}, GpuQuantity::kMemoryUsed},
    Row{{.key = "utilization.gpu", .unit = Unit::kPercent, .most = 100, .family = "accelerator_utilization_ratio", .source = "gpu_metrics, average_gfx_activity"}, GpuQuantity::kUtilization},
    Row{{.key = "utilization.memory", .unit = Unit::kPercent, .most = 100, .family = "accelerator_memory_copy_utilization_ratio", .source = "gpu_metrics, average_umc_activity"}, GpuQuantity::kMemoryUtilization},
    Row{{.key = "temperature.gpu", .unit = Unit::kCelsius, .most = kMaxCelsius, .family = "accelerator_temperature_celsius", .source = "gpu_metrics, temperature_hotspot"}, GpuQuantity::kTemperature},
    Row{{.key = "temperature.memory", .unit = Unit::kCelsius, .most = kMaxCelsius, .family = "accelerator_memory_temperature_celsius", .source = "gpu_metrics, temperature_mem"}, GpuQuantity::kMemoryTemperature},
    Row{{.key = "power", .unit = Unit::kMilliwatts, .most = kMaxMilliwatts, .family = "accelerator_power_watts", .source = "gpu_metrics, curr_socket_power or average_socket_power"}, GpuQuantity::kPower},
    Row{{.key = "energy", .unit = Unit::kMillijoules, .counter = true, .family = "accelerator_energy_joules_total", .source = "gpu_metrics, energy_accumulator"}, GpuQuantity::kEnergy},
    Row{{.key = "clock.sm", .unit = Unit::kMegahertz, .most = kMaxMegahertz, .family = "accelerator_clock_hertz", .labels = R"(clock="sm")", .source = "gpu_metrics, current_gfxclk"}, GpuQuantity::kComputeClock},
    Row{{.key = "clock.memory", .unit = Unit::kMegahertz, .most = kMaxMegahertz, .family = "accelerator_clock_hertz", .labels = R"(clock="memory")", .source = "gpu_metrics, current_uclk"}, GpuQuantity::kMemoryClock},
    Row{{.key = "pcie.width", .pace = Pace::kSlow, .most = 64, .family = "accelerator_pcie_link_width", .source = "gpu_metrics, pcie_link_width"}, GpuQuantity::kPcieWidth},
    Row{{.key = "ecc.volatile.corrected", .counter = true, .pace = Pace::kSlow, .family = "accelerator_ecc_errors_total", .labels = R"(error="corrected")", .source = "ras/*_err_count, ce"}, GpuQuantity::kCorrectable},
    Row{{.key = "ecc.volatile.uncorrected", .counter = true, .pace = Pace::kSlow, .family = "accelerator_ecc_errors_total", .labels = R"(error="uncorrected")", .source = "ras/*_err_count, ue"}, GpuQuantity::kUncorrectable},
};
// clang-format on

constexpr auto kQuantities = [] {
  std::array<device::Quantity, kRows.size()> quantities;
  for (std::size_t i = 0; i < kRows.size(); ++i) quantities[i] = kRows[i].quantity;
  return quantities;
}();

}  // namespace

std::span<const device::Quantity> TheQuantities() { return kQuantities; }

std::optional<GpuQuantity> GpuQuantityOf(device::QuantityId id) {
  if (id >= kRows.size()) return std::nullopt;
  return kRows[id].what;
}

}  // namespace penstock::backend::amd
