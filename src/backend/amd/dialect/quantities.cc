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
    Row{{.key = "ecc.deferred", .counter = true, .pace = Pace::kSlow, .source = "ras/*_err_count, de"}, GpuQuantity::kDeferred},
    Row{{.key = "memory.total", .unit = Unit::kBytes, .pace = Pace::kSlow, .source = "mem_info_vram_total"}, GpuQuantity::kMemoryTotal},
    Row{{.key = "memory.free", .unit = Unit::kBytes, .source = "mem_info_vram_total, mem_info_vram_used"}, GpuQuantity::kMemoryFree},
    Row{{.key = "memory.visible.total", .unit = Unit::kBytes, .pace = Pace::kSlow, .source = "mem_info_vis_vram_total"}, GpuQuantity::kVisibleTotal},
    Row{{.key = "memory.visible.used", .unit = Unit::kBytes, .source = "mem_info_vis_vram_used"}, GpuQuantity::kVisibleUsed},
    Row{{.key = "memory.visible.free", .unit = Unit::kBytes, .source = "mem_info_vis_vram_total, mem_info_vis_vram_used"}, GpuQuantity::kVisibleFree},
    Row{{.key = "memory.gtt.total", .unit = Unit::kBytes, .pace = Pace::kSlow, .source = "mem_info_gtt_total"}, GpuQuantity::kGttTotal},
    Row{{.key = "memory.gtt.used", .unit = Unit::kBytes, .source = "mem_info_gtt_used"}, GpuQuantity::kGttUsed},
    Row{{.key = "memory.gtt.free", .unit = Unit::kBytes, .source = "mem_info_gtt_total, mem_info_gtt_used"}, GpuQuantity::kGttFree},
    Row{{.key = "memory.bandwidth", .pace = Pace::kSlow, .source = "gpu_metrics, mem_max_bandwidth", .has = "gpu_metrics 1.7 and newer"}, GpuQuantity::kMemoryBandwidth},
    Row{{.key = "power.current", .unit = Unit::kMilliwatts, .most = kMaxMilliwatts, .source = "gpu_metrics, curr_socket_power", .has = "MI300 and newer"}, GpuQuantity::kPowerNow},
    Row{{.key = "power.average", .unit = Unit::kMilliwatts, .most = kMaxMilliwatts, .source = "gpu_metrics, average_socket_power", .has = "up to MI200"}, GpuQuantity::kAveragePower},
    Row{{.key = "energy.micro", .counter = true, .source = "gpu_metrics, energy_accumulator"}, GpuQuantity::kMicrojoules},
    Row{{.key = "temperature.edge", .unit = Unit::kCelsius, .most = kMaxCelsius, .source = "gpu_metrics, temperature_edge", .has = "up to MI200"}, GpuQuantity::kEdgeTemperature},
    Row{{.key = "temperature.hbm", .unit = Unit::kCelsius, .per_link = true, .most = kMaxCelsius, .source = "gpu_metrics, temperature_hbm", .has = "MI200"}, GpuQuantity::kHbmTemperatures},
    Row{{.key = "utilization.multimedia", .unit = Unit::kPercent, .most = 100, .source = "gpu_metrics, average_mm_activity", .has = "up to MI200"}, GpuQuantity::kMultimedia},
    Row{{.key = "utilization.video", .unit = Unit::kPercent, .per_link = true, .most = 100, .source = "gpu_metrics, vcn_activity", .has = "gpu_metrics 1.4 and 1.5"}, GpuQuantity::kVideoUse},
    Row{{.key = "utilization.jpeg", .unit = Unit::kPercent, .per_link = true, .most = 100, .source = "gpu_metrics, jpeg_activity", .has = "gpu_metrics 1.5"}, GpuQuantity::kJpegUse},
    Row{{.key = "busy.compute", .unit = Unit::kPercent, .per_link = true, .most = 100, .source = "gpu_metrics, gfx_busy_inst", .has = "gpu_metrics 1.6 and newer"}, GpuQuantity::kComputeBusy},
    Row{{.key = "busy.video", .unit = Unit::kPercent, .per_link = true, .most = 100, .source = "gpu_metrics, vcn_busy", .has = "gpu_metrics 1.6 and newer"}, GpuQuantity::kVideoBusy},
    Row{{.key = "busy.jpeg", .unit = Unit::kPercent, .per_link = true, .most = 100, .source = "gpu_metrics, jpeg_busy", .has = "gpu_metrics 1.6 and newer"}, GpuQuantity::kJpegBusy},
    Row{{.key = "voltage.soc", .source = "gpu_metrics, voltage_soc", .has = "gpu_metrics 1.3"}, GpuQuantity::kSocVoltage},
    Row{{.key = "voltage.gfx", .source = "gpu_metrics, voltage_gfx", .has = "gpu_metrics 1.3"}, GpuQuantity::kGfxVoltage},
    Row{{.key = "voltage.memory", .source = "gpu_metrics, voltage_mem", .has = "gpu_metrics 1.3"}, GpuQuantity::kMemoryVoltage},
    Row{{.key = "pcie.speed", .pace = Pace::kSlow, .source = "gpu_metrics, pcie_link_speed"}, GpuQuantity::kPcieSpeed},
    Row{{.key = "pcie.speed.max", .pace = Pace::kSlow, .source = "max_link_speed"}, GpuQuantity::kPcieMaxSpeed},
    Row{{.key = "pcie.bandwidth", .source = "gpu_metrics, pcie_bandwidth_inst", .has = "MI300 and newer"}, GpuQuantity::kPcieBandwidth},
    Row{{.key = "pcie.bandwidth.total", .source = "gpu_metrics, pcie_bandwidth_acc", .has = "MI300 and newer"}, GpuQuantity::kPcieBandwidthTotal},
    Row{{.key = "pcie.replays", .counter = true, .source = "gpu_metrics, pcie_replay_count_acc", .has = "MI300 and newer"}, GpuQuantity::kPcieReplays},
    Row{{.key = "pcie.recoveries", .counter = true, .source = "gpu_metrics, pcie_l0_to_recov_count_acc", .has = "MI300 and newer"}, GpuQuantity::kPcieRecoveries},
    Row{{.key = "pcie.rollovers", .counter = true, .source = "gpu_metrics, pcie_replay_rover_count_acc", .has = "MI300 and newer"}, GpuQuantity::kPcieRollovers},
    Row{{.key = "pcie.naks.sent", .counter = true, .source = "gpu_metrics, pcie_nak_sent_count_acc", .has = "gpu_metrics 1.5 and newer"}, GpuQuantity::kPcieNaksSent},
    Row{{.key = "pcie.naks.received", .counter = true, .source = "gpu_metrics, pcie_nak_rcvd_count_acc", .has = "gpu_metrics 1.5 and newer"}, GpuQuantity::kPcieNaksReceived},
    Row{{.key = "clock", .unit = Unit::kMegahertz, .per_link = true, .most = kMaxMegahertz, .source = "gpu_metrics, current_*clk"}, GpuQuantity::kClocks},
    Row{{.key = "clock.min", .unit = Unit::kMegahertz, .pace = Pace::kSlow, .per_link = true, .most = kMaxMegahertz, .source = "pp_dpm_*"}, GpuQuantity::kLowestClocks},
    Row{{.key = "clock.max", .unit = Unit::kMegahertz, .pace = Pace::kSlow, .per_link = true, .most = kMaxMegahertz, .source = "pp_dpm_*"}, GpuQuantity::kHighestClocks},
    Row{{.key = "xgmi.received", .counter = true, .per_link = true, .source = "gpu_metrics, xgmi_read_data_acc", .has = "MI300 and newer"}, GpuQuantity::kXgmiReceived},
    Row{{.key = "xgmi.sent", .counter = true, .per_link = true, .source = "gpu_metrics, xgmi_write_data_acc", .has = "MI300 and newer"}, GpuQuantity::kXgmiSent},
    Row{{.key = "throttle.count", .counter = true, .source = "gpu_metrics, accumulation_counter", .has = "gpu_metrics 1.6 and newer"}, GpuQuantity::kThrottleCount},
    Row{{.key = "throttle.hot", .counter = true, .source = "gpu_metrics, prochot_residency_acc", .has = "gpu_metrics 1.6 and newer"}, GpuQuantity::kThrottleHot},
    Row{{.key = "throttle.power", .counter = true, .source = "gpu_metrics, ppt_residency_acc", .has = "gpu_metrics 1.6 and newer"}, GpuQuantity::kThrottlePower},
    Row{{.key = "throttle.socket", .counter = true, .source = "gpu_metrics, socket_thm_residency_acc", .has = "gpu_metrics 1.6 and newer"}, GpuQuantity::kThrottleSocket},
    Row{{.key = "throttle.regulators", .counter = true, .source = "gpu_metrics, vr_thm_residency_acc", .has = "gpu_metrics 1.6 and newer"}, GpuQuantity::kThrottleRegulators},
    Row{{.key = "throttle.memory", .counter = true, .source = "gpu_metrics, hbm_thm_residency_acc", .has = "gpu_metrics 1.6 and newer"}, GpuQuantity::kThrottleMemory},
    Row{{.key = "slow.power", .counter = true, .per_link = true, .source = "gpu_metrics, gfx_below_host_limit_ppt_acc", .has = "gpu_metrics 1.8 and newer"}, GpuQuantity::kSlowPower},
    Row{{.key = "slow.heat", .counter = true, .per_link = true, .source = "gpu_metrics, gfx_below_host_limit_thm_acc", .has = "gpu_metrics 1.8 and newer"}, GpuQuantity::kSlowHeat},
    Row{{.key = "slow.idle", .counter = true, .per_link = true, .source = "gpu_metrics, gfx_low_utilization_acc", .has = "gpu_metrics 1.8 and newer"}, GpuQuantity::kSlowIdle},
    Row{{.key = "slow.total", .counter = true, .per_link = true, .source = "gpu_metrics, gfx_below_host_limit_total_acc", .has = "gpu_metrics 1.8 and newer"}, GpuQuantity::kSlowTotal},
    Row{{.key = "ecc.block.corrected", .counter = true, .pace = Pace::kSlow, .per_link = true, .source = "ras/*_err_count, ce"}, GpuQuantity::kCorrectableOfBlocks},
    Row{{.key = "ecc.block.uncorrected", .counter = true, .pace = Pace::kSlow, .per_link = true, .source = "ras/*_err_count, ue"}, GpuQuantity::kUncorrectableOfBlocks},
    Row{{.key = "ecc.block.deferred", .counter = true, .pace = Pace::kSlow, .per_link = true, .source = "ras/*_err_count, de"}, GpuQuantity::kDeferredOfBlocks},
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
