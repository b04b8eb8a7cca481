// Implements -q: the part of the detailed listing that tools read.
#include <cstdio>

#include "sim/nvidia-smi/commands.h"
#include "sim/nvidia-smi/instances.h"

namespace smi {
namespace {

// Prints "label : value" with the colon in this driver's column.
class Printer {
 public:
  explicit Printer(unsigned branch) : column_(branch >= 590 ? 55 : 42) {}
  void Head(int depth, const std::string& label) const {
    std::printf("%*s%s\n", depth * 4, "", label.c_str());
  }
  void Line(int depth, const std::string& label, const std::string& value) const {
    std::printf("%*s%-*s: %s\n", depth * 4, "", column_ - depth * 4, label.c_str(), value.c_str());
  }
  void Line(int depth, const std::string& label, std::optional<NvUint> value,
            const char* unit = "") const {
    Line(depth, label, value ? std::to_string(*value) + unit : "N/A");
  }

 private:
  int column_;
};

std::string EnabledText(std::optional<NvUint> value) {
  return value ? (*value ? "Enabled" : "Disabled") : "N/A";
}

std::string WattsText(std::optional<NvUint> milliwatts) {
  if (!milliwatts) return "N/A";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f W", *milliwatts / 1000.0);
  return text;
}

const char* Architecture(std::optional<NvUint> number) {
  static const char* const kNames[] = {"Volta",        "Turing", "Ampere",
                                       "Ada Lovelace", "Hopper", "Blackwell"};
  return number && *number >= 5 && *number <= 10 ? kNames[*number - 5] : "N/A";
}

void Mig(const Printer& out, const Gpu& gpu, const MigDevice& mig) {
  const auto mib = [](NvUlong bytes) { return std::to_string(bytes >> 20) + " MiB"; };
  const auto errors = Gpu(gpu.nvml(), 0, mig.device).Ecc(NV_ERRORS_UNCORRECTED, NV_ECC_VOLATILE);
  out.Head(1, "MIG Device");
  out.Line(2, "Index", mig.index);
  out.Line(2, "GPU Instance ID", mig.instance);
  out.Line(2, "Compute Instance ID", mig.compute);
  out.Head(2, "Device Attributes");
  out.Head(3, "Shared");
  out.Line(4, "Multiprocessor count", mig.attributes.multiprocessorCount);
  out.Line(4, "Copy Engine count", mig.attributes.sharedCopyEngineCount);
  out.Line(4, "Encoder count", mig.attributes.sharedEncoderCount);
  out.Line(4, "Decoder count", mig.attributes.sharedDecoderCount);
  out.Line(4, "OFA count", mig.attributes.sharedOfaCount);
  out.Line(4, "JPG count", mig.attributes.sharedJpegCount);
  out.Head(2, "ECC Errors");
  out.Head(3, "Volatile");
  out.Line(4, "SRAM Uncorrectable", errors ? std::to_string(*errors) : "N/A");
  out.Head(2, "FB Memory Usage");
  out.Line(3, "Total", mib(mig.memory.total));
  if (gpu.nvml().Branch() >= 510) out.Line(3, "Reserved", mib(mig.memory.reserved));
  out.Line(3, "Used", mib(mig.memory.used));
  out.Line(3, "Free", mib(mig.memory.free));
  out.Head(2, "BAR1 Memory");
  out.Line(3, "Total", mib(mig.bar1.bar1Total));
  out.Line(3, "Used", mib(mig.bar1.bar1Used));
  out.Line(3, "Free", mib(mig.bar1.bar1Free));
}

void Identity(const Printer& out, const Gpu& gpu) {
  const auto brand = gpu.Number("nvmlDeviceGetBrand");
  out.Line(1, "Product Name", gpu.Text("nvmlDeviceGetName").value_or("N/A"));
  out.Line(1, "Product Brand", brand == 2 ? "Tesla" : brand == 5 ? "GeForce" : "NVIDIA");
  out.Line(1, "Product Architecture", Architecture(gpu.Number("nvmlDeviceGetArchitecture")));
  out.Line(1, "Display Active", EnabledText(gpu.Number("nvmlDeviceGetDisplayActive")));
  out.Line(1, "Persistence Mode", EnabledText(gpu.Number("nvmlDeviceGetPersistenceMode")));
  out.Head(1, "MIG Mode");
  out.Line(2, "Current", EnabledText(gpu.Pair("nvmlDeviceGetMigMode", 0)));
  out.Line(2, "Pending", EnabledText(gpu.Pair("nvmlDeviceGetMigMode", 1)));
  for (const MigDevice& mig : MigDevicesOf(gpu)) Mig(out, gpu, mig);
  out.Line(1, "Serial Number", gpu.Text("nvmlDeviceGetSerial").value_or("N/A"));
  out.Line(1, "GPU UUID", gpu.Text("nvmlDeviceGetUUID").value_or("N/A"));
  out.Line(1, "Minor Number", gpu.Number("nvmlDeviceGetMinorNumber"));
  out.Line(1, "VBIOS Version", gpu.Text("nvmlDeviceGetVbiosVersion").value_or("N/A"));
  out.Line(1, "GPU Part Number", gpu.Text("nvmlDeviceGetBoardPartNumber").value_or("N/A"));
  if (gpu.nvml().Branch() >= 565) {
    static const char* const kActions[] = {"None",      "Reset",           "Reboot",
                                           "Drain P2P", "Drain and Reset", "Recover IMEX Domain",
                                           "Bus Reset", "System Reboot"};
    const auto action = gpu.Field(NV_FI_RECOVERY_ACTION);
    out.Line(1, "GPU Recovery Action", action && *action < 8 ? kActions[*action] : "N/A");
  }
}

void Bus(const Printer& out, const Gpu& gpu) {
  const auto pci = gpu.Pci().value_or(NvPciInfo{});
  char text[32];
  const auto hex = [&](const char* format, unsigned value) {
    std::snprintf(text, sizeof text, format, value);
    return std::string(text);
  };
  out.Head(1, "PCI");
  out.Line(2, "Bus", hex("0x%02X", pci.bus));
  out.Line(2, "Device", hex("0x%02X", pci.device));
  out.Line(2, "Domain", hex("0x%04X", pci.domain));
  out.Line(2, "Device Id", hex("0x%08X", pci.pciDeviceId));
  out.Line(2, "Bus Id", pci.busId);
  out.Line(2, "Sub System Id", hex("0x%08X", pci.pciSubSystemId));
  out.Head(2, "GPU Link Info");
  out.Head(3, "PCIe Generation");
  out.Line(4, "Max", gpu.Number("nvmlDeviceGetMaxPcieLinkGeneration"));
  out.Line(4, "Current", gpu.Number("nvmlDeviceGetCurrPcieLinkGeneration"));
  out.Head(3, "Link Width");
  out.Line(4, "Max", gpu.Number("nvmlDeviceGetMaxPcieLinkWidth"), "x");
  out.Line(4, "Current", gpu.Number("nvmlDeviceGetCurrPcieLinkWidth"), "x");
  out.Line(2, "Replays Since Reset", gpu.Number("nvmlDeviceGetPcieReplayCounter"));
  out.Line(2, "Tx Throughput", gpu.Number("nvmlDeviceGetPcieThroughput", NvUint{0}), " KB/s");
  out.Line(2, "Rx Throughput", gpu.Number("nvmlDeviceGetPcieThroughput", NvUint{1}), " KB/s");
}

void Reasons(const Printer& out, const Gpu& gpu) {
  static const struct {
    const char* name;
    NvUlong bit;
    int depth;
  } kReasons[] = {{"Idle", 0x1, 2},
                  {"Applications Clocks Setting", 0x2, 2},
                  {"SW Power Cap", 0x4, 2},
                  {"HW Slowdown", 0x8, 2},
                  {"HW Thermal Slowdown", 0x40, 3},
                  {"HW Power Brake Slowdown", 0x80, 3},
                  {"Sync Boost", 0x10, 2},
                  {"SW Thermal Slowdown", 0x20, 2},
                  {"Display Clock Setting", 0x100, 2}};
  const auto active = gpu.Struct<NvUlong>("nvmlDeviceGetCurrentClocksThrottleReasons");
  out.Head(1, gpu.nvml().Branch() >= 535 ? "Clocks Event Reasons" : "Clocks Throttle Reasons");
  for (const auto& reason : kReasons)
    out.Line(reason.depth, reason.name,
             !active                ? "N/A"
             : *active & reason.bit ? "Active"
                                    : "Not Active");
}

void Utilization(const Printer& out, const Gpu& gpu) {
  const auto use = gpu.Struct<NvUtilization>("nvmlDeviceGetUtilizationRates");
  out.Head(1, "Utilization");
  out.Line(2, gpu.nvml().Branch() >= 570 ? "GPU" : "Gpu",
           use ? std::optional(use->gpu) : std::nullopt, " %");
  out.Line(2, "Memory", use ? std::optional(use->memory) : std::nullopt, " %");
  out.Line(2, "Encoder", gpu.Pair("nvmlDeviceGetEncoderUtilization", 0), " %");
  out.Line(2, "Decoder", gpu.Pair("nvmlDeviceGetDecoderUtilization", 0), " %");
  if (gpu.nvml().Branch() < 535) return;
  out.Line(2, "JPEG", gpu.Pair("nvmlDeviceGetJpgUtilization", 0), " %");
  out.Line(2, "OFA", gpu.Pair("nvmlDeviceGetOfaUtilization", 0), " %");
}

void Memory(const Printer& out, const Gpu& gpu) {
  const auto memory = gpu.MemoryMiB();
  const auto mib = [](NvUlong value) { return std::to_string(value) + " MiB"; };
  out.Line(1, "Fan Speed", gpu.Number("nvmlDeviceGetFanSpeed"), " %");
  const auto state = gpu.Number("nvmlDeviceGetPerformanceState");
  out.Line(1, "Performance State", state ? "P" + std::to_string(*state) : "N/A");
  Reasons(out, gpu);
  out.Head(1, "FB Memory Usage");
  out.Line(2, "Total", memory ? mib(memory->total) : "N/A");
  if (memory && memory->reserved) out.Line(2, "Reserved", mib(*memory->reserved));
  out.Line(2, "Used", memory ? mib(memory->used) : "N/A");
  out.Line(2, "Free", memory ? mib(memory->free) : "N/A");
  if (const auto bar = gpu.Struct<NvBar1Memory>("nvmlDeviceGetBAR1MemoryInfo")) {
    out.Head(1, "BAR1 Memory Usage");
    out.Line(2, "Total", mib(bar->bar1Total >> 20));
    out.Line(2, "Used", mib(bar->bar1Used >> 20));
    out.Line(2, "Free", mib(bar->bar1Free >> 20));
  }
  static const char* const kModes[] = {"Default", "Exclusive_Thread", "Prohibited",
                                       "Exclusive_Process"};
  out.Line(1, "Compute Mode", kModes[gpu.Number("nvmlDeviceGetComputeMode").value_or(0) & 3]);
  Utilization(out, gpu);
}

void Health(const Printer& out, const Gpu& gpu) {
  const auto count = [](std::optional<NvUlong> value) {
    return value ? std::to_string(*value) : "N/A";
  };
  out.Head(1, "ECC Mode");
  out.Line(2, "Current", EnabledText(gpu.Pair("nvmlDeviceGetEccMode", 0)));
  out.Line(2, "Pending", EnabledText(gpu.Pair("nvmlDeviceGetEccMode", 1)));
  out.Head(1, "ECC Errors");
  for (const NvUint counter : {NV_ECC_VOLATILE, NV_ECC_AGGREGATE}) {
    out.Head(2, counter == NV_ECC_VOLATILE ? "Volatile" : "Aggregate");
    out.Line(3, "DRAM Correctable", count(gpu.Ecc(0, counter)));
    out.Line(3, "DRAM Uncorrectable", count(gpu.Ecc(1, counter)));
  }
  const auto yes_no = [](std::optional<NvUint> value) {
    return value ? (*value ? "Yes" : "No") : "N/A";
  };
  if (gpu.Remapped(0)) {
    out.Head(1, "Remapped Rows");
    out.Line(2, "Correctable Error", gpu.Remapped(0));
    out.Line(2, "Uncorrectable Error", gpu.Remapped(1));
    out.Line(2, "Pending", std::string(yes_no(gpu.Remapped(2))));
    out.Line(2, "Remapping Failure Occurred", std::string(yes_no(gpu.Remapped(3))));
  } else {
    out.Line(1, "Remapped Rows", "N/A");
  }
}

void Physics(const Printer& out, const Gpu& gpu) {
  out.Head(1, "Temperature");
  out.Line(2, "GPU Current Temp", gpu.Number("nvmlDeviceGetTemperature", NvUint{0}), " C");
  const auto memory = gpu.Field(NV_FI_MEMORY_TEMP);
  out.Line(2, "Memory Current Temp", memory ? std::to_string(*memory) + " C" : "N/A");
  out.Head(1, gpu.nvml().Branch() >= 535 ? "GPU Power Readings" : "Power Readings");
  out.Line(2, gpu.nvml().Branch() >= 570 ? "Average Power Draw" : "Power Draw",
           WattsText(gpu.Number("nvmlDeviceGetPowerUsage")));
  if (gpu.nvml().Branch() >= 570) {
    const auto instant = gpu.Field(NV_FI_POWER_INSTANT);
    out.Line(2, "Instantaneous Power Draw",
             WattsText(instant ? std::optional(static_cast<NvUint>(*instant)) : std::nullopt));
  }
  out.Line(2, "Current Power Limit", WattsText(gpu.Number("nvmlDeviceGetPowerManagementLimit")));
  out.Line(2, "Default Power Limit",
           WattsText(gpu.Number("nvmlDeviceGetPowerManagementDefaultLimit")));
  out.Line(2, "Min Power Limit",
           WattsText(gpu.Pair("nvmlDeviceGetPowerManagementLimitConstraints", 0)));
  out.Line(2, "Max Power Limit",
           WattsText(gpu.Pair("nvmlDeviceGetPowerManagementLimitConstraints", 1)));
  out.Head(1, "Clocks");
  out.Line(2, "SM", gpu.Number("nvmlDeviceGetClockInfo", NvUint{NV_CLOCK_SM}), " MHz");
  out.Line(2, "Memory", gpu.Number("nvmlDeviceGetClockInfo", NvUint{NV_CLOCK_MEM}), " MHz");
  out.Head(1, "Max Clocks");
  out.Line(2, "SM", gpu.Number("nvmlDeviceGetMaxClockInfo", NvUint{NV_CLOCK_SM}), " MHz");
  out.Line(2, "Memory", gpu.Number("nvmlDeviceGetMaxClockInfo", NvUint{NV_CLOCK_MEM}), " MHz");
}

void Processes(const Gpu& gpu) {
  const Printer out(0);  // this section's colon has the same column in all versions
  const auto processes = gpu.Processes();
  if (processes.empty()) {
    out.Line(1, "Processes", "None");
    return;
  }
  out.Head(1, "Processes");
  for (const Process& process : processes) {
    const auto id = [](NvUint of) { return of == UINT32_MAX ? "N/A" : std::to_string(of); };
    out.Line(2, "GPU instance ID", id(process.instance));
    out.Line(2, "Compute instance ID", id(process.compute));
    out.Line(2, "Process ID", process.pid);
    out.Line(3, "Type", std::string(1, process.type));
    out.Line(3, "Name", process.name);
    out.Line(3, "Used GPU Memory", std::to_string(process.bytes >> 20) + " MiB");
  }
}

}  // namespace

int PrintDetails(const Nvml& nvml, const Gpus& gpus) {
  const Printer out(nvml.Branch());
  std::printf("\n==============NVSMI LOG==============\n\n");
  out.Line(0, "Timestamp", Timestamp("%a %b %e %H:%M:%S %Y"));
  out.Line(0, "Driver Version", nvml.DriverVersion());
  out.Line(0, "CUDA Version", nvml.CudaVersion());
  std::printf("\n");
  out.Line(0, "Attached GPUs", std::to_string(gpus.found.size() + gpus.lost.size()));
  for (const Gpu& gpu : gpus.found) {
    std::printf("GPU %s\n", BusId(gpu).c_str());
    Identity(out, gpu);
    Bus(out, gpu);
    Memory(out, gpu);
    Health(out, gpu);
    Physics(out, gpu);
    Processes(gpu);
    std::printf("\n");
  }
  return kOk;
}

}  // namespace smi
