// Names, units and indices: ROCm, device-metrics-exporter (docs/configuration/metricslist.md,
// pkg/amdgpu/gpuagent/gpuagent_gpu_metrics.go, pkg/exporter/proto/exporterconfig.proto) and
// gpu-agent (sw/nic/gpuagent/api/smi/amdsmi/smi_api.cc). A series is named as its field, in lower
// case. The texts of help are Penstock's.
#include "backend/amd/dialect/exporter_fields.h"

#include <array>
#include <deque>

#include "backend/amd/dialect/blocks.h"

namespace penstock::backend::amd {
namespace {

using device::ExporterField;
using device::FieldSource;

constexpr double kMegabytes = 1024 * 1024;  // as AMD's GPU agent divides

/// A value of the device: the quantity `from`, divided.
ExportedField Measured(std::string_view name, std::string_view from, std::string_view help,
                       double divisor = 1) {
  return {{.name = name, .from = from, .divisor = divisor}, help, {}};
}

/// A value of each part of the chip.
ExportedField Indexed(std::string_view name, std::string_view from, std::string_view index,
                      std::string_view help) {
  return {{.name = name, .from = from, .index = true}, help, index};
}

ExportedField Missing(std::string_view name, std::string_view why) {
  return {{.name = name, .source = FieldSource::kUnavailable, .from = why}, {}, {}};
}

ExportedField Label(std::string_view name) {
  return {{.name = name, .source = FieldSource::kFact}, {}, {}};
}

constexpr std::string_view kNeedsCounters =
    "it needs the driver's performance counters, which one program at a time can have";
constexpr std::string_view kNeedsTwoReadings =
    "AMD's library computes it from two readings 100 ms apart; use the accumulated counters";
constexpr std::string_view kNeedsLibrary = "no file of the driver has it, only AMD's library";
constexpr std::string_view kNeedsProfiler =
    "it needs AMD's profiler, which keeps applications from profiling";

std::vector<ExportedField> OfDevices() {
  return {
      {{.name = "gpu_nodes_total", .source = FieldSource::kDevices},
       "Number of GPUs and partitions of the node",
       {}},
      Measured("gpu_package_power", "power.current", "Power now (in W)", 1000),
      Measured("gpu_average_package_power", "power.average", "Average power (in W)", 1000),
      Measured("gpu_edge_temperature", "temperature.edge", "Temperature at the edge (in C)"),
      Measured("gpu_junction_temperature", "temperature.gpu", "Temperature of the hot spot (in C)"),
      Measured("gpu_memory_temperature", "temperature.memory", "Temperature of the memory (in C)"),
      Indexed("gpu_hbm_temperature", "temperature.hbm", "hbm_index",
              "Temperature of a stack of memory (in C)"),
      Measured("gpu_gfx_activity", "utilization.gpu", "Use of the compute units (in %)"),
      Measured("gpu_umc_activity", "utilization.memory", "Use of the memory controllers (in %)"),
      Measured("gpu_mma_activity", "utilization.multimedia", "Use of the video engines (in %)"),
      Indexed("gpu_vcn_activity", "utilization.video", "vcn_index", "Use of a video engine (in %)"),
      Indexed("gpu_jpeg_activity", "utilization.jpeg", "jpeg_index", "Use of a JPEG engine (in %)"),
      Measured("gpu_voltage", "voltage.soc", "Voltage of the SoC (in mV)"),
      Measured("gpu_gfx_voltage", "voltage.gfx", "Voltage of the compute units (in mV)"),
      Measured("gpu_memory_voltage", "voltage.memory", "Voltage of the memory (in mV)"),
      Measured("pcie_speed", "pcie.speed", "Speed of PCIe now (in GT/s)", 10),
      Measured("pcie_max_speed", "pcie.speed.max", "Highest speed of PCIe (in GT/s)", 10),
      Measured("pcie_bandwidth", "pcie.bandwidth", "Data rate of PCIe now (in Mb/s)"),
      Measured("gpu_energy_consumed", "energy.micro", "Energy since the driver started (in uJ)"),
      Measured("pcie_replay_count", "pcie.replays", "Replays on PCIe"),
      Measured("pcie_recovery_count", "pcie.recoveries", "Recoveries of the PCIe link"),
      Measured("pcie_replay_rollover_count", "pcie.rollovers", "Rollovers of replays on PCIe"),
      Measured("pcie_nack_sent_count", "pcie.naks.sent", "NAKs sent on PCIe"),
      Measured("pcie_nack_received_count", "pcie.naks.received", "NAKs received on PCIe"),
      Indexed("gpu_clock", "clock", "clock_index", "A clock now (in MHz)"),
      Measured("gpu_power_usage", "power", "Power (in W)", 1000),
      Measured("gpu_total_vram", "memory.total", "Memory (in MB)", kMegabytes),
      Measured("gpu_ecc_correct_total", "ecc.volatile.corrected", "Corrected errors of all blocks"),
      Measured("gpu_ecc_uncorrect_total", "ecc.volatile.uncorrected",
               "Uncorrected errors of all blocks"),
      Measured("gpu_ecc_deferred_total", "ecc.deferred", "Deferred errors of all blocks"),
      Missing("gpu_xgmi_nbr_0_nop_tx", kNeedsCounters),
      Missing("gpu_xgmi_nbr_0_req_tx", kNeedsCounters),
      Missing("gpu_xgmi_nbr_0_resp_tx", kNeedsCounters),
      Missing("gpu_xgmi_nbr_0_beats_tx", kNeedsCounters),
      Missing("gpu_xgmi_nbr_1_nop_tx", kNeedsCounters),
      Missing("gpu_xgmi_nbr_1_req_tx", kNeedsCounters),
      Missing("gpu_xgmi_nbr_1_resp_tx", kNeedsCounters),
      Missing("gpu_xgmi_nbr_1_beats_tx", kNeedsCounters),
      Missing("gpu_xgmi_nbr_0_tx_thrput", kNeedsCounters),
      Missing("gpu_xgmi_nbr_1_tx_thrput", kNeedsCounters),
      Missing("gpu_xgmi_nbr_2_tx_thrput", kNeedsCounters),
      Missing("gpu_xgmi_nbr_3_tx_thrput", kNeedsCounters),
      Missing("gpu_xgmi_nbr_4_tx_thrput", kNeedsCounters),
      Missing("gpu_xgmi_nbr_5_tx_thrput", kNeedsCounters),
      Measured("gpu_used_vram", "memory.used", "Memory in use (in MB)", kMegabytes),
      Measured("gpu_free_vram", "memory.free", "Memory that is free (in MB)", kMegabytes),
      Measured("gpu_total_visible_vram", "memory.visible.total",
               "Memory that the processor can address (in MB)", kMegabytes),
      Measured("gpu_used_visible_vram", "memory.visible.used", "Of that, in use (in MB)",
               kMegabytes),
      Measured("gpu_free_visible_vram", "memory.visible.free", "Of that, free (in MB)", kMegabytes),
      Measured("gpu_total_gtt", "memory.gtt.total", "Memory of the machine for the GPU (in MB)",
               kMegabytes),
      Measured("gpu_used_gtt", "memory.gtt.used", "Of that, in use (in MB)", kMegabytes),
      Measured("gpu_free_gtt", "memory.gtt.free", "Of that, free (in MB)", kMegabytes),
      {{.name = "gpu_health", .source = FieldSource::kHealthy}, "Health: 1 healthy, 0 not", {}},
      Indexed("gpu_xgmi_link_rx", "xgmi.received", "link_index",
              "Data received over an xGMI link (in KB)"),
      Indexed("gpu_xgmi_link_tx", "xgmi.sent", "link_index", "Data sent over an xGMI link (in KB)"),
      Measured("gpu_violation_current_accumulated_counter", "throttle.count",
               "Intervals in which the firmware looked for reasons to throttle"),
      Measured("gpu_violation_processor_hot_residency_accumulated", "throttle.hot",
               "Intervals throttled for the processor's heat"),
      Measured("gpu_violation_ppt_residency_accumulated", "throttle.power",
               "Intervals throttled for power"),
      Measured("gpu_violation_socket_thermal_residency_accumulated", "throttle.socket",
               "Intervals throttled for the socket's heat"),
      Measured("gpu_violation_vr_thermal_residency_accumulated", "throttle.regulators",
               "Intervals throttled for the voltage regulators' heat"),
      Measured("gpu_violation_hbm_thermal_residency_accumulated", "throttle.memory",
               "Intervals throttled for the memory's heat"),
      Indexed("gpu_gfx_busy_instantaneous", "busy.compute", "xcc_index",
              "Use of a compute chiplet now (in %)"),
      Indexed("gpu_vcn_busy_instantaneous", "busy.video", "xcc_index",
              "Use of a video engine now (in %)"),
      Indexed("gpu_jpeg_busy_instantaneous", "busy.jpeg", "xcc_index",
              "Use of a JPEG engine now (in %)"),
      Missing("gpu_violation_processor_hot_residency_percentage", kNeedsTwoReadings),
      Missing("gpu_violation_ppt_residency_percentage", kNeedsTwoReadings),
      Missing("gpu_violation_socket_thermal_residency_percentage", kNeedsTwoReadings),
      Missing("gpu_violation_vr_thermal_residency_percentage", kNeedsTwoReadings),
      Missing("gpu_violation_hbm_thermal_residency_percentage", kNeedsTwoReadings),
      Indexed("gpu_violation_gfx_clock_below_host_limit_power_accumulated", "slow.power",
              "xcc_index", "Intervals with a low clock for power"),
      Indexed("gpu_violation_gfx_clock_below_host_limit_thermal_accumulated", "slow.heat",
              "xcc_index", "Intervals with a low clock for heat"),
      Indexed("gpu_violation_low_utilization_accumulated", "slow.idle", "xcc_index",
              "Intervals with a low clock for want of work"),
      Indexed("gpu_violation_gfx_clock_below_host_limit_total_accumulated", "slow.total",
              "xcc_index", "Intervals with a low clock"),
      Missing("gpu_violation_gfx_clock_below_host_limit_power_percentage", kNeedsTwoReadings),
      Missing("gpu_violation_gfx_clock_below_host_limit_thermal_percentage", kNeedsTwoReadings),
      Missing("gpu_violation_low_utilization_percentage", kNeedsTwoReadings),
      Missing("gpu_violation_gfx_clock_below_host_limit_total_percentage", kNeedsTwoReadings),
      Missing("pcie_rx", kNeedsLibrary),
      Missing("pcie_tx", kNeedsLibrary),
      Measured("pcie_bidirectional_bandwidth", "pcie.bandwidth.total",
               "Data rate of PCIe, accumulated (in GB/s)"),
      Indexed("gpu_min_clock", "clock.min", "clock_index", "Lowest frequency of a clock (in MHz)"),
      Indexed("gpu_max_clock", "clock.max", "clock_index", "Highest frequency of a clock (in MHz)"),
      Measured("gpu_vram_max_bandwidth", "memory.bandwidth",
               "Highest data rate of the memory (in GB/s)"),
      Missing("gpu_afid_errors", kNeedsLibrary),
      Missing("gpu_process_cu_occupancy",
              "its label has ids of processes, which leave the node with telemetry.processes only"),
      Label("gpu_uuid"),
      Label("card_series"),
      Label("card_vendor"),
      Label("driver_version"),
      Label("vbios_version"),
  };
}

/// In capitals: "GPU_PROF_...".
constexpr std::array kProfiled{
    "gpu_prof_grbm_gui_active",
    "gpu_prof_sq_waves",
    "gpu_prof_grbm_count",
    "gpu_prof_cpc_cpc_stat_busy",
    "gpu_prof_cpc_cpc_stat_idle",
    "gpu_prof_cpc_cpc_stat_stall",
    "gpu_prof_cpc_cpc_tciu_busy",
    "gpu_prof_cpc_cpc_tciu_idle",
    "gpu_prof_cpc_cpc_utcl2iu_busy",
    "gpu_prof_cpc_cpc_utcl2iu_idle",
    "gpu_prof_cpc_cpc_utcl2iu_stall",
    "gpu_prof_cpc_me1_busy_for_packet_decode",
    "gpu_prof_cpc_me1_dc0_spi_busy",
    "gpu_prof_cpc_utcl1_stall_on_translation",
    "gpu_prof_cpc_always_count",
    "gpu_prof_cpc_adc_valid_chunk_not_avail",
    "gpu_prof_cpc_adc_dispatch_alloc_done",
    "gpu_prof_cpc_adc_valid_chunk_end",
    "gpu_prof_cpc_sync_fifo_full_level",
    "gpu_prof_cpc_sync_fifo_full",
    "gpu_prof_cpc_gd_busy",
    "gpu_prof_cpc_tg_send",
    "gpu_prof_cpc_walk_next_chunk",
    "gpu_prof_cpc_stalled_by_se0_spi",
    "gpu_prof_cpc_stalled_by_se1_spi",
    "gpu_prof_cpc_stalled_by_se2_spi",
    "gpu_prof_cpc_stalled_by_se3_spi",
    "gpu_prof_cpc_lte_all",
    "gpu_prof_cpc_sync_wrreq_fifo_busy",
    "gpu_prof_cpc_cane_busy",
    "gpu_prof_cpc_cane_stall",
    "gpu_prof_cpf_cmp_utcl1_stall_on_translation",
    "gpu_prof_cpf_cpf_stat_busy",
    "gpu_prof_cpf_cpf_stat_idle",
    "gpu_prof_cpf_cpf_stat_stall",
    "gpu_prof_cpf_cpf_tciu_busy",
    "gpu_prof_cpf_cpf_tciu_idle",
    "gpu_prof_cpf_cpf_tciu_stall",
    "gpu_prof_fetch_size",
    "gpu_prof_write_size",
    "gpu_prof_total_16_ops",
    "gpu_prof_total_32_ops",
    "gpu_prof_total_64_ops",
    "gpu_prof_gui_util_percent",
    "gpu_prof_occupancy_percent",
    "gpu_prof_tensor_active_percent",
    "gpu_prof_valu_pipe_issue_util",
    "gpu_prof_sm_active",
    "gpu_prof_occupancy_elapsed",
    "gpu_prof_occupancy_per_active_cu",
    "gpu_prof_occupancy_per_cu",
    "gpu_prof_simd_utilization",
};

struct ErrorKind {
  std::string_view word, from, help;
};
constexpr std::array kErrorKinds{
    ErrorKind{"correct", "ecc.block.corrected", "Corrected errors of a block"},
    ErrorKind{"uncorrect", "ecc.block.uncorrected", "Uncorrected errors of a block"},
    ErrorKind{"deferred", "ecc.block.deferred", "Deferred errors of a block"},
};

}  // namespace

const std::vector<ExportedField>& ExportedFields() {
  static std::deque<std::string> names;  // whose places do not change
  static const std::vector<ExportedField> fields = [] {
    std::vector<ExportedField> all = OfDevices();
    for (std::size_t block = 0; block < kBlocks.size(); ++block)
      for (const ErrorKind& kind : kErrorKinds) {
        names.push_back("gpu_ecc_" + std::string(kind.word) + "_" +
                        std::string(kBlocks[block].name));
        all.push_back(
            {{.name = names.back(), .from = kind.from, .one_link = static_cast<int>(block)},
             kind.help,
             {}});
      }
    for (const char* name : kProfiled) all.push_back(Missing(name, kNeedsProfiler));
    for (std::size_t i = 0; i < all.size(); ++i) all[i].field.number = static_cast<int>(i);
    return all;
  }();
  return fields;
}

std::string_view ClockType(int index) {
  return index < kMemoryClockIndex  ? "system"
         : index < kVideoClockIndex ? "memory"
         : index < kDataClockIndex  ? "video"
         : index < kSocClockIndex   ? "data"
                                    : "soc";
}

}  // namespace penstock::backend::amd
