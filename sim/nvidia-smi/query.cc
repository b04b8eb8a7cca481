// Implements --query-gpu and --query-compute-apps, with one table from field names to values.
#include <cstdio>
#include <functional>
#include <utility>

#include "sim/nvidia-smi/commands.h"

namespace smi {
namespace {

using Value = std::optional<std::string>;

struct FieldRow {
  std::vector<const char*> names;  // the canonical one first, then aliases
  const char* unit;                // as in the header
  std::function<Value(const Gpu&)> value;
};

Value Plain(std::optional<NvUint> value) {
  return value ? Value(std::to_string(*value)) : std::nullopt;
}
Value Wide(std::optional<NvUlong> value) {
  return value ? Value(std::to_string(*value)) : std::nullopt;
}

Value Watts(std::optional<NvUint> milliwatts) {
  if (!milliwatts) return std::nullopt;
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", *milliwatts / 1000.0);
  return text;
}

Value Format(const char* format, unsigned value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

Value Enabled(std::optional<NvUint> value) {
  return value ? Value(*value ? "Enabled" : "Disabled") : std::nullopt;
}
Value YesNo(std::optional<NvUint> value) {
  return value ? Value(*value ? "Yes" : "No") : std::nullopt;
}

Value ComputeMode(const Gpu& gpu) {
  static const char* const kModes[] = {"Default", "Exclusive_Thread", "Prohibited",
                                       "Exclusive_Process"};
  const auto mode = gpu.Number("nvmlDeviceGetComputeMode");
  return mode && *mode < 4 ? Value(kModes[*mode]) : std::nullopt;
}

Value ComputeCapability(const Gpu& gpu) {
  int major = 0, minor = 0;
  if (gpu.nvml().Call("nvmlDeviceGetCudaComputeCapability", gpu.device(), &major, &minor) !=
      NV_SUCCESS)
    return std::nullopt;
  return std::to_string(major) + "." + std::to_string(minor);
}

Value Recovery(const Gpu& gpu) {
  static const char* const kActions[] = {"None",      "Reset",           "Reboot",
                                         "Drain P2P", "Drain and Reset", "Recover IMEX Domain",
                                         "Bus Reset", "System Reboot"};
  const auto action = gpu.Field(NV_FI_RECOVERY_ACTION);
  return action && *action >= 0 && *action < 8 ? Value(kActions[*action]) : std::nullopt;
}

std::optional<NvUlong> Reasons(const Gpu& gpu) {
  return gpu.Struct<NvUlong>("nvmlDeviceGetCurrentClocksThrottleReasons");
}

FieldRow Text(std::vector<const char*> names, const char* call) {
  return {std::move(names), "", [call](const Gpu& gpu) { return gpu.Text(call); }};
}
FieldRow Number(std::vector<const char*> names, const char* unit, const char* call) {
  return {std::move(names), unit, [call](const Gpu& gpu) { return Plain(gpu.Number(call)); }};
}
FieldRow Clock(std::vector<const char*> names, const char* call, NvUint type) {
  return {std::move(names), "MHz",
          [call, type](const Gpu& gpu) { return Plain(gpu.Number(call, type)); }};
}
FieldRow Power(std::vector<const char*> names, const char* call) {
  return {std::move(names), "W", [call](const Gpu& gpu) { return Watts(gpu.Number(call)); }};
}
FieldRow PowerField(const char* name, NvUint field) {
  return {
      {name}, "W", [field](const Gpu& gpu) {
        const auto milliwatts = gpu.Field(field);
        return Watts(milliwatts ? std::optional(static_cast<NvUint>(*milliwatts)) : std::nullopt);
      }};
}
FieldRow Engine(const char* name, const char* call) {
  return {{name}, "%", [call](const Gpu& gpu) { return Plain(gpu.Pair(call, 0)); }};
}
FieldRow EccCount(const char* name, NvUint error, NvUint counter) {
  return {{name}, "", [=](const Gpu& gpu) { return Wide(gpu.Ecc(error, counter)); }};
}
FieldRow Reason(const char* name, NvUlong bit) {
  return {{name}, "", [bit](const Gpu& gpu) -> Value {
            const auto reasons = Reasons(gpu);
            return reasons ? Value(*reasons & bit ? "Active" : "Not Active") : std::nullopt;
          }};
}

void AddIdentity(std::vector<FieldRow>& rows) {
  rows.push_back(
      {{"timestamp"}, "", [](const Gpu&) { return Timestamp("%Y/%m/%d %H:%M:%S.000"); }});
  rows.push_back(
      {{"driver_version"}, "", [](const Gpu& gpu) { return gpu.nvml().DriverVersion(); }});
  rows.push_back({{"count"}, "", [](const Gpu& gpu) {
                    NvUint count = 0;
                    gpu.nvml().Call("nvmlDeviceGetCount_v2", &count);
                    return std::to_string(count);
                  }});
  rows.push_back(Text({"name", "gpu_name"}, "nvmlDeviceGetName"));
  rows.push_back(Text({"serial", "gpu_serial"}, "nvmlDeviceGetSerial"));
  rows.push_back(Text({"uuid", "gpu_uuid"}, "nvmlDeviceGetUUID"));
  rows.push_back(Text({"vbios_version"}, "nvmlDeviceGetVbiosVersion"));
  rows.push_back({{"index"}, "", [](const Gpu& gpu) { return std::to_string(gpu.index()); }});
  rows.push_back({{"compute_cap"}, "", ComputeCapability});
  rows.push_back({{"pci.bus_id", "gpu_bus_id"}, "", [](const Gpu& gpu) { return BusId(gpu); }});
  rows.push_back({{"pci.domain"}, "", [](const Gpu& gpu) {
                    return Format("0x%04X", gpu.Pci().value_or(NvPciInfo{}).domain);
                  }});
  rows.push_back({{"pci.bus"}, "", [](const Gpu& gpu) {
                    return Format("0x%02X", gpu.Pci().value_or(NvPciInfo{}).bus);
                  }});
  rows.push_back({{"pci.device"}, "", [](const Gpu& gpu) {
                    return Format("0x%02X", gpu.Pci().value_or(NvPciInfo{}).device);
                  }});
  rows.push_back({{"pci.device_id"}, "", [](const Gpu& gpu) {
                    return Format("0x%08X", gpu.Pci().value_or(NvPciInfo{}).pciDeviceId);
                  }});
  rows.push_back({{"pci.sub_device_id"}, "", [](const Gpu& gpu) {
                    return Format("0x%08X", gpu.Pci().value_or(NvPciInfo{}).pciSubSystemId);
                  }});
  rows.push_back(Number({"pcie.link.gen.current", "pcie.link.gen.gpucurrent"}, "",
                        "nvmlDeviceGetCurrPcieLinkGeneration"));
  rows.push_back(Number({"pcie.link.gen.max", "pcie.link.gen.hostmax"}, "",
                        "nvmlDeviceGetMaxPcieLinkGeneration"));
  rows.push_back(Number({"pcie.link.gen.gpumax"}, "", "nvmlDeviceGetGpuMaxPcieLinkGeneration"));
  rows.push_back(Number({"pcie.link.width.current"}, "", "nvmlDeviceGetCurrPcieLinkWidth"));
  rows.push_back(Number({"pcie.link.width.max"}, "", "nvmlDeviceGetMaxPcieLinkWidth"));
}

void AddReadings(std::vector<FieldRow>& rows) {
  const auto memory = [](NvUlong Gpu::Memory::*part) {
    return [part](const Gpu& gpu) -> Value {
      const auto all = gpu.MemoryMiB();
      return all ? Value(std::to_string((*all).*part)) : std::nullopt;
    };
  };
  rows.push_back({{"memory.total"}, "MiB", memory(&Gpu::Memory::total)});
  rows.push_back({{"memory.reserved"}, "MiB", [](const Gpu& gpu) {
                    return Wide(gpu.MemoryMiB().value_or(Gpu::Memory{}).reserved);
                  }});
  rows.push_back({{"memory.used"}, "MiB", memory(&Gpu::Memory::used)});
  rows.push_back({{"memory.free"}, "MiB", memory(&Gpu::Memory::free)});
  rows.push_back({{"utilization.gpu"}, "%", [](const Gpu& gpu) -> Value {
                    const auto use = gpu.Struct<NvUtilization>("nvmlDeviceGetUtilizationRates");
                    return use ? Plain(use->gpu) : std::nullopt;
                  }});
  rows.push_back({{"utilization.memory"}, "%", [](const Gpu& gpu) -> Value {
                    const auto use = gpu.Struct<NvUtilization>("nvmlDeviceGetUtilizationRates");
                    return use ? Plain(use->memory) : std::nullopt;
                  }});
  rows.push_back(Engine("utilization.encoder", "nvmlDeviceGetEncoderUtilization"));
  rows.push_back(Engine("utilization.decoder", "nvmlDeviceGetDecoderUtilization"));
  rows.push_back(Engine("utilization.jpeg", "nvmlDeviceGetJpgUtilization"));
  rows.push_back(Engine("utilization.ofa", "nvmlDeviceGetOfaUtilization"));
  rows.push_back(Number({"fan.speed"}, "%", "nvmlDeviceGetFanSpeed"));
  rows.push_back({{"temperature.gpu"}, "", [](const Gpu& gpu) {
                    return Plain(gpu.Number("nvmlDeviceGetTemperature", NvUint{0}));
                  }});
  // The only field that prints N/A without brackets.
  rows.push_back({{"temperature.memory"}, "", [](const Gpu& gpu) -> Value {
                    const auto celsius = gpu.Field(NV_FI_MEMORY_TEMP);
                    return celsius ? std::to_string(*celsius) : "N/A";
                  }});
  rows.push_back(Power({"power.draw"}, "nvmlDeviceGetPowerUsage"));
  rows.push_back(PowerField("power.draw.average", NV_FI_POWER_AVERAGE));
  rows.push_back(PowerField("power.draw.instant", NV_FI_POWER_INSTANT));
  rows.push_back(Power({"power.limit"}, "nvmlDeviceGetPowerManagementLimit"));
  rows.push_back(Power({"enforced.power.limit"}, "nvmlDeviceGetEnforcedPowerLimit"));
  rows.push_back(Power({"power.default_limit"}, "nvmlDeviceGetPowerManagementDefaultLimit"));
  rows.push_back({{"power.min_limit"}, "W", [](const Gpu& gpu) {
                    return Watts(gpu.Pair("nvmlDeviceGetPowerManagementLimitConstraints", 0));
                  }});
  rows.push_back({{"power.max_limit"}, "W", [](const Gpu& gpu) {
                    return Watts(gpu.Pair("nvmlDeviceGetPowerManagementLimitConstraints", 1));
                  }});
  rows.push_back(
      Clock({"clocks.current.graphics", "clocks.gr"}, "nvmlDeviceGetClockInfo", NV_CLOCK_GRAPHICS));
  rows.push_back(Clock({"clocks.current.sm", "clocks.sm"}, "nvmlDeviceGetClockInfo", NV_CLOCK_SM));
  rows.push_back(
      Clock({"clocks.current.memory", "clocks.mem"}, "nvmlDeviceGetClockInfo", NV_CLOCK_MEM));
  rows.push_back(
      Clock({"clocks.current.video", "clocks.video"}, "nvmlDeviceGetClockInfo", NV_CLOCK_VIDEO));
  rows.push_back(Clock({"clocks.max.graphics", "clocks.max.gr"}, "nvmlDeviceGetMaxClockInfo",
                       NV_CLOCK_GRAPHICS));
  rows.push_back(Clock({"clocks.max.sm"}, "nvmlDeviceGetMaxClockInfo", NV_CLOCK_SM));
  rows.push_back(
      Clock({"clocks.max.memory", "clocks.max.mem"}, "nvmlDeviceGetMaxClockInfo", NV_CLOCK_MEM));
  rows.push_back(Clock({"clocks.applications.graphics", "clocks.applications.gr"},
                       "nvmlDeviceGetApplicationsClock", NV_CLOCK_GRAPHICS));
  rows.push_back(Clock({"clocks.applications.memory", "clocks.applications.mem"},
                       "nvmlDeviceGetApplicationsClock", NV_CLOCK_MEM));
  rows.push_back({{"clocks_event_reasons.active", "clocks_throttle_reasons.active"},
                  "",
                  [](const Gpu& gpu) -> Value {
                    const auto reasons = Reasons(gpu);
                    char text[32];
                    std::snprintf(text, sizeof text, "0x%016llx", reasons.value_or(0));
                    return reasons ? Value(text) : std::nullopt;
                  }});
  rows.push_back(Reason("clocks_event_reasons.gpu_idle", 0x1));
  rows.push_back(Reason("clocks_event_reasons.applications_clocks_setting", 0x2));
  rows.push_back(Reason("clocks_event_reasons.sw_power_cap", 0x4));
  rows.push_back(Reason("clocks_event_reasons.hw_slowdown", 0x8));
  rows.push_back(Reason("clocks_event_reasons.sync_boost", 0x10));
  rows.push_back(Reason("clocks_event_reasons.sw_thermal_slowdown", 0x20));
  rows.push_back(Reason("clocks_event_reasons.hw_thermal_slowdown", 0x40));
  rows.push_back(Reason("clocks_event_reasons.hw_power_brake_slowdown", 0x80));
}

void AddModesAndHealth(std::vector<FieldRow>& rows) {
  rows.push_back({{"pstate"}, "", [](const Gpu& gpu) -> Value {
                    const auto state = gpu.Number("nvmlDeviceGetPerformanceState");
                    return state ? Value("P" + std::to_string(*state)) : std::nullopt;
                  }});
  rows.push_back({{"persistence_mode"}, "", [](const Gpu& gpu) {
                    return Enabled(gpu.Number("nvmlDeviceGetPersistenceMode"));
                  }});
  rows.push_back({{"display_active"}, "", [](const Gpu& gpu) {
                    return Enabled(gpu.Number("nvmlDeviceGetDisplayActive"));
                  }});
  rows.push_back({{"display_mode"}, "", [](const Gpu& gpu) {
                    return Enabled(gpu.Number("nvmlDeviceGetDisplayMode"));
                  }});
  rows.push_back({{"accounting.mode"}, "", [](const Gpu& gpu) {
                    return Enabled(gpu.Number("nvmlDeviceGetAccountingMode"));
                  }});
  rows.push_back({{"compute_mode"}, "", ComputeMode});
  rows.push_back({{"ecc.mode.current"}, "", [](const Gpu& gpu) {
                    return Enabled(gpu.Pair("nvmlDeviceGetEccMode", 0));
                  }});
  rows.push_back({{"ecc.mode.pending"}, "", [](const Gpu& gpu) {
                    return Enabled(gpu.Pair("nvmlDeviceGetEccMode", 1));
                  }});
  rows.push_back(EccCount("ecc.errors.corrected.volatile.total", 0, 0));
  rows.push_back(EccCount("ecc.errors.corrected.aggregate.total", 0, 1));
  rows.push_back(EccCount("ecc.errors.uncorrected.volatile.total", 1, 0));
  rows.push_back(EccCount("ecc.errors.uncorrected.aggregate.total", 1, 1));
  rows.push_back({{"retired_pages.single_bit_ecc.count", "retired_pages.sbe"},
                  "",
                  [](const Gpu& gpu) { return Plain(gpu.RetiredPages(0)); }});
  rows.push_back({{"retired_pages.double_bit.count", "retired_pages.dbe"}, "", [](const Gpu& gpu) {
                    return Plain(gpu.RetiredPages(1));
                  }});
  rows.push_back({{"retired_pages.pending"}, "", [](const Gpu& gpu) {
                    return YesNo(gpu.Number("nvmlDeviceGetRetiredPagesPendingStatus"));
                  }});
  rows.push_back(
      {{"remapped_rows.correctable"}, "", [](const Gpu& gpu) { return Plain(gpu.Remapped(0)); }});
  rows.push_back(
      {{"remapped_rows.uncorrectable"}, "", [](const Gpu& gpu) { return Plain(gpu.Remapped(1)); }});
  rows.push_back(
      {{"remapped_rows.pending"}, "", [](const Gpu& gpu) { return YesNo(gpu.Remapped(2)); }});
  rows.push_back(
      {{"remapped_rows.failure"}, "", [](const Gpu& gpu) { return YesNo(gpu.Remapped(3)); }});
  rows.push_back({{"mig.mode.current"}, "", [](const Gpu& gpu) {
                    return Enabled(gpu.Pair("nvmlDeviceGetMigMode", 0));
                  }});
  rows.push_back({{"mig.mode.pending"}, "", [](const Gpu& gpu) {
                    return Enabled(gpu.Pair("nvmlDeviceGetMigMode", 1));
                  }});
  rows.push_back({{"gsp.mode.current"}, "", [](const Gpu& gpu) {
                    return Enabled(gpu.Pair("nvmlDeviceGetGspFirmwareMode", 0));
                  }});
  rows.push_back({{"addressing_mode"}, "", [](const Gpu&) { return "None"; }});
  rows.push_back({{"gpu_recovery_action"}, "", Recovery});
  rows.push_back({{"fabric.state"}, "", [](const Gpu& gpu) -> Value {
                    const auto fabric = gpu.Struct<NvFabric>("nvmlDeviceGetGpuFabricInfo");
                    return fabric ? (fabric->state == 3 ? "Completed" : "In Progress") : "N/A";
                  }});
  rows.push_back({{"fabric.status"}, "", [](const Gpu& gpu) -> Value {
                    const auto fabric = gpu.Struct<NvFabric>("nvmlDeviceGetGpuFabricInfo");
                    return fabric ? "Success" : "N/A";
                  }});
}

const std::vector<FieldRow>& Rows() {
  static const std::vector<FieldRow> rows = [] {
    std::vector<FieldRow> all;
    AddIdentity(all);
    AddReadings(all);
    AddModesAndHealth(all);
    return all;
  }();
  return rows;
}

const FieldRow* Find(const std::string& name) {
  for (const FieldRow& row : Rows())
    for (const char* known : row.names)
      if (name == known) return &row;
  return nullptr;
}

// Removed in 590.
bool IsDeprecated(const FieldRow& row, unsigned branch) {
  const std::string name = row.names[0];
  return branch >= 590 && (name == "display_mode" || name.rfind("clocks.applications.", 0) == 0);
}

std::string Cell(const FieldRow& row, const Gpu& gpu, bool units) {
  if (IsDeprecated(row, gpu.nvml().Branch()))
    return "[Requested functionality has been deprecated]";
  const Value value = row.value(gpu);
  if (!value) return gpu.nvml().Branch() < 470 ? "[Not Supported]" : "[N/A]";
  return units && row.unit[0] ? *value + " " + row.unit : *value;
}

void PrintRow(const std::vector<std::string>& cells) {
  for (std::size_t i = 0; i < cells.size(); i++)
    std::printf("%s%s", i ? ", " : "", cells[i].c_str());
  std::printf("\n");
}

int UnknownField(const std::string& name) {
  std::printf("Field \"%s\" is not a valid field to query.\n\n", name.c_str());
  return kBadArgument;
}

}  // namespace

int QueryGpus(const Nvml&, const Gpus& gpus, const CsvOptions& options) {
  std::vector<const FieldRow*> rows;
  std::vector<std::string> header;
  for (const std::string& name : options.fields) {
    const FieldRow* row = Find(name);
    if (!row) return UnknownField(name);
    rows.push_back(row);
    header.push_back(std::string(row->names[0]) +
                     (row->unit[0] ? std::string(" [") + row->unit + "]" : ""));
  }
  if (options.header) PrintRow(header);
  for (const Gpu& gpu : gpus.found) {
    std::vector<std::string> cells;
    for (const FieldRow* row : rows) cells.push_back(Cell(*row, gpu, options.units));
    PrintRow(cells);
  }
  return kOk;
}

int QueryProcesses(const Gpus& gpus, const CsvOptions& options) {
  std::vector<std::string> header;
  for (const std::string& name : options.fields) {
    const bool memory = name == "used_gpu_memory" || name == "used_memory";
    const bool known = memory || name == "pid" || name == "process_name" || name == "name" ||
                       name == "gpu_uuid" || name == "gpu_bus_id" || name == "gpu_name" ||
                       name == "gpu_serial" || name == "timestamp";
    if (!known) return UnknownField(name);
    header.push_back(memory ? "used_gpu_memory [MiB]" : name == "name" ? "process_name" : name);
  }
  if (options.header) PrintRow(header);
  for (const Gpu& gpu : gpus.found) {
    for (const Process& process : gpu.Processes()) {
      if (process.type == 'G') continue;
      std::vector<std::string> cells;
      for (const std::string& name : header) {
        if (name == "pid")
          cells.push_back(std::to_string(process.pid));
        else if (name == "process_name")
          cells.push_back(process.name);
        else if (name[0] == 'u')
          cells.push_back(std::to_string(process.bytes >> 20) + (options.units ? " MiB" : ""));
        else
          cells.push_back(Find(name)->value(gpu).value_or("[N/A]"));
      }
      PrintRow(cells);
    }
  }
  return kOk;
}

}  // namespace smi
