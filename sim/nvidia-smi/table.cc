// Implements the default table. Widths and headings depend on the driver branch.
#include <cstdio>

#include "sim/nvidia-smi/commands.h"
#include "sim/nvidia-smi/mig_tables.h"

namespace smi {
namespace {

struct Widths {
  int total, name, bus, usage;  // widths of the table, and of its three columns between the bars
};

Widths WidthsOf(unsigned branch) {
  if (branch < 530) return {79, 31, 22, 22};
  if (branch < 550) return {89, 41, 22, 22};
  return {91, 41, 24, 22};
}

std::string Repeat(char c, int count) {
  return std::string(static_cast<std::size_t>(count > 0 ? count : 0), c);
}

std::string Left(const std::string& text, int width) {
  return text + Repeat(' ', width - static_cast<int>(text.size()));
}
std::string Right(const std::string& text, int width) {
  return Repeat(' ', width - static_cast<int>(text.size())) + text;
}
// Truncates longer names with dots.
std::string Cut(const std::string& text, int width) {
  const auto size = static_cast<std::size_t>(width);
  return text.size() <= size ? Left(text, width) : text.substr(0, size - 3) + "...";
}

std::string Rule(const Widths& w, char fill, char left, char middle) {
  return std::string(1, left) + Repeat(fill, w.name) + middle + Repeat(fill, w.bus) + middle +
         Repeat(fill, w.usage) + (fill == '-' ? '+' : '|');
}

void Line(const std::string& text) { std::printf("%s\n", text.c_str()); }

std::string Number(std::optional<NvUint> value, const char* unit) {
  return value ? std::to_string(*value) + unit : "N/A";
}

void PrintBanner(const Nvml& nvml, const Widths& w) {
  std::printf("%s       \n", Timestamp("%a %b %e %H:%M:%S %Y").c_str());
  Line("+" + Repeat('-', w.total - 2) + "+");
  const std::string version = nvml.DriverVersion();
  const bool split = nvml.Branch() >= 610;
  std::string text = "| NVIDIA-SMI " + Left(version, w.total < 89 ? 12 : 22) + " " +
                     (split ? "KMD Version: " : "Driver Version: ") +
                     Left(version, w.total < 91 ? 12 : 14) + " " +
                     (split ? "CUDA UMD Version: " : "CUDA Version: ") + nvml.CudaVersion();
  Line(Left(text, w.total - 1) + "|");
  Line(Rule(w, '-', nvml.Branch() >= 580 ? '+' : '|', '+'));
  const bool mig = nvml.Branch() >= 450;
  if (w.total == 79) {
    Line("| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |");
    Line("| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |");
  } else {
    Line("| GPU  Name                 Persistence-M |" +
         Left(" Bus-Id" + Repeat(' ', w.bus - 15) + " Disp.A", w.bus - 1) +
         " | Volatile Uncorr. ECC |");
    Line("| Fan  Temp   Perf          Pwr:Usage/Cap |" + Right("Memory-Usage", w.bus - 1) +
         " | GPU-Util  Compute M. |");
  }
  if (mig) Line("|" + Repeat(' ', w.name) + "|" + Repeat(' ', w.bus) + "|               MIG M. |");
  Line(Rule(w, '=', '|', '+'));
}

std::string EccCell(const Gpu& gpu) {
  const auto mode = gpu.Pair("nvmlDeviceGetEccMode", 0),
             pending = gpu.Pair("nvmlDeviceGetEccMode", 1);
  if (!mode) return "N/A";
  if (*mode != pending) return *mode ? "On*" : "Off*";
  if (!*mode) return "Off";
  if (gpu.Pair("nvmlDeviceGetMigMode", 0).value_or(0)) return "On";
  return std::to_string(gpu.Ecc(1, 0).value_or(0));
}

std::string ComputeCell(const Gpu& gpu) {
  static const char* const kModes[] = {"Default", "E. Thread", "Prohibited", "E. Process"};
  return kModes[gpu.Number("nvmlDeviceGetComputeMode").value_or(0) & 3];
}

std::string MigCell(const Gpu& gpu) {
  const auto mode = gpu.Pair("nvmlDeviceGetMigMode", 0);
  return mode ? (*mode ? "Enabled" : "Disabled") : "N/A";
}

// "  On   |" in the narrow table, "On  |" in the wide ones.
std::string NameRow(const Gpu& gpu, const Widths& w) {
  const std::string persistence =
      Left(gpu.Number("nvmlDeviceGetPersistenceMode").value_or(0) ? "On" : "Off", 3);
  const bool narrow = w.total == 79;
  const std::string name = Cut(gpu.Text("nvmlDeviceGetName").value_or("N/A"), narrow ? 18 : 31);
  return "|" + Right(std::to_string(gpu.index()), 4) + "  " + name +
         (narrow ? "  " + persistence + "  |" : persistence + " |");
}

std::string PowerCell(const Gpu& gpu, const Widths& w) {
  const auto draw = gpu.Number("nvmlDeviceGetPowerUsage"),
             limit = gpu.Number("nvmlDeviceGetEnforcedPowerLimit");
  const auto watts = [](std::optional<NvUint> value) {
    return value ? std::to_string((*value + 500) / 1000) + "W" : "N/A";
  };
  return watts(draw) + " / " + Right(watts(limit), w.total == 91 ? 5 : 4);
}

std::string MemoryCell(const Gpu& gpu, const Widths& w) {
  const auto memory = gpu.MemoryMiB();
  if (!memory) return "N/A";
  return std::to_string(memory->used) + "MiB / " +
         Right(std::to_string(memory->total), w.bus == 24 ? 6 : 5) + "MiB";
}

void PrintGpu(const Gpu& gpu, const Widths& w) {
  const std::string active = gpu.Number("nvmlDeviceGetDisplayActive").value_or(0) ? "On" : "Off";
  const auto use = gpu.Struct<NvUtilization>("nvmlDeviceGetUtilizationRates");
  Line(NameRow(gpu, w) + Left(Repeat(' ', w.bus - 21) + BusId(gpu), w.bus - 4) + Right(active, 3) +
       " |" + Right(EccCell(gpu), w.usage - 1) + " |");
  const std::string temperature = Number(gpu.Number("nvmlDeviceGetTemperature", NvUint{0}), "C");
  const auto state = gpu.Number("nvmlDeviceGetPerformanceState");
  const std::string left = Right(Number(gpu.Number("nvmlDeviceGetFanSpeed"), "%"), 4) +
                           Right(temperature, 6) + "    " +
                           Left(state ? "P" + std::to_string(*state) : "N/A", 3);
  Line("|" + left + Right(PowerCell(gpu, w), w.name - static_cast<int>(left.size()) - 1) + " |" +
       Right(MemoryCell(gpu, w), w.bus - 1) + " |" +
       Right(use ? std::to_string(use->gpu) + "%" : "N/A", 8) +
       Right(ComputeCell(gpu), w.usage - 9) + " |");
  if (gpu.nvml().Branch() >= 450)
    Line("|" + Repeat(' ', w.name) + "|" + Repeat(' ', w.bus) + "|" +
         Right(MigCell(gpu), w.usage - 1) + " |");
  Line(Rule(w, '-', '+', '+'));
}

std::string CutFront(const std::string& text, int width) {
  const auto size = static_cast<std::size_t>(width);
  return text.size() <= size ? Left(text, width) : "..." + text.substr(text.size() - size + 3);
}

// The ids of the process's instances, centered as the program does.
std::string IdCells(const Process& process) {
  if (process.instance == UINT32_MAX) return "   N/A  N/A";
  return Right(std::to_string(process.instance), 5) + Right(std::to_string(process.compute), 5) +
         " ";
}

void PrintProcesses(const Nvml& nvml, const Gpus& gpus, const Widths& w) {
  const int inner = w.total - 2;
  // Since 570 there is room for long pids.
  const int pid_width = nvml.Branch() >= 570 ? 16 : 10;
  const int rest = inner - 1 - (16 + pid_width + 7 + 3);  // shared by the name and the memory
  Line(nvml.Branch() >= 580 ? "" : Repeat(' ', w.total == 91 ? 89 : w.total));
  Line("+" + Repeat('-', inner) + "+");
  Line("|" + Left(" Processes:", inner) + "|");
  Line(
      "|" +
      Left("  GPU   GI   CI" + Right("PID", pid_width + 1) + "   Type   Process name", inner - 11) +
      "GPU Memory |");
  Line("|" + Left("        ID   ID", inner - 11) + "Usage      |");
  Line("|" + Repeat('=', inner) + "|");
  bool any = false;
  for (const Gpu& gpu : gpus.found) {
    for (const Process& process : gpu.Processes()) {
      any = true;
      Line("|" + Right(std::to_string(gpu.index()), 5) + IdCells(process) +
           Right(std::to_string(process.pid), pid_width) + Right(std::string(1, process.type), 7) +
           "   " + CutFront(process.name, rest - 10) +
           Right(std::to_string(process.bytes >> 20) + "MiB", 10) + " |");
    }
  }
  if (!any) Line("|" + Left("  No running processes found", inner) + "|");
  Line("+" + Repeat('-', inner) + "+");
}

}  // namespace

int PrintTable(const Nvml& nvml, const Gpus& gpus) {
  const Widths w = WidthsOf(nvml.Branch());
  PrintBanner(nvml, w);
  for (const Gpu& gpu : gpus.found) PrintGpu(gpu, w);
  PrintMigDevices(gpus.found);
  PrintProcesses(nvml, gpus, w);
  return kOk;
}

}  // namespace smi
