// nvidia-smi of a simulated machine: the options of the real program that tools use, its output and
// its exit codes. Depends only on the library's calls and, for a reset, on the state file.
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>

#include "sim/nvidia-smi/commands.h"
#include "sim/nvidia-smi/instances.h"

namespace smi {

std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : text + ",") {
    if (c != ',') {
      part += c;
      continue;
    }
    const std::size_t first = part.find_first_not_of(' '), last = part.find_last_not_of(' ');
    parts.push_back(first == std::string::npos ? "" : part.substr(first, last - first + 1));
    part.clear();
  }
  return parts;
}

int ReportInit(const Nvml& nvml) {
  if (nvml.result() == InitResult::kNoLibrary) {
    std::puts(
        "NVIDIA-SMI couldn't find libnvidia-ml.so library in your system. Please make sure that "
        "the NVIDIA Display Driver is properly "
        "installed and "
        "present in your system.\nPlease also try adding directory that contains libnvidia-ml.so "
        "to your system PATH.");
    return kNoLibrary;
  }
  if (nvml.init_code() == NV_DRIVER_NOT_LOADED) {
    std::puts(
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure "
        "that the latest NVIDIA driver is "
        "installed and "
        "running.\n");
    return kNotLoaded;
  }
  std::printf("Failed to initialize NVML: %s\n", nvml.ErrorString(nvml.init_code()).c_str());
  return nvml.init_code() < 256 ? static_cast<int>(nvml.init_code()) : kOther;
}

bool Select(Gpus& gpus, const std::vector<std::string>& ids, std::string& unknown) {
  if (ids.empty()) return true;
  const auto matches = [](const Gpu& gpu, const std::string& id) {
    if (id == std::to_string(gpu.index()) || gpu.Text("nvmlDeviceGetUUID") == id) return true;
    NvDevice other = nullptr;
    return id.find(':') != std::string::npos &&
           gpu.nvml().Call("nvmlDeviceGetHandleByPciBusId_v2", id.c_str(), &other) == NV_SUCCESS &&
           other == gpu.device();
  };
  for (const std::string& id : ids) {
    const auto hit = [&](const Gpu& gpu) { return matches(gpu, id); };
    const bool lost = std::any_of(gpus.lost.begin(), gpus.lost.end(), [&](const Unreachable& gpu) {
      return std::to_string(gpu.index) == id;
    });
    if (!lost && std::none_of(gpus.found.begin(), gpus.found.end(), hit)) {
      unknown = id;
      return false;
    }
  }
  std::vector<Gpu> kept;
  for (const Gpu& gpu : gpus.found)
    if (std::any_of(ids.begin(), ids.end(),
                    [&](const std::string& id) { return matches(gpu, id); }))
      kept.push_back(gpu);
  std::vector<Unreachable> lost;
  for (const Unreachable& gpu : gpus.lost)
    if (std::find(ids.begin(), ids.end(), std::to_string(gpu.index)) != ids.end())
      lost.push_back(gpu);
  gpus = Gpus{};
  for (const Gpu& gpu : kept) gpus.found.emplace_back(gpu);
  gpus.lost = lost;
  return true;
}

namespace {

struct Options {
  bool help = false, version = false, list = false, details = false, reset = false;
  std::string query_gpu, query_processes, format, compute_mode, mig_mode;
  std::vector<std::string> ids;
  std::string wrong;
};

// Reads "--name=value" or "--name value".
bool TakeValue(const std::vector<std::string>& arguments, std::size_t& at, const char* name,
               std::string& value) {
  const std::string& argument = arguments[at];
  const std::string prefix = std::string(name) + "=";
  if (argument.compare(0, prefix.size(), prefix) == 0) {
    value = argument.substr(prefix.size());
    return true;
  }
  if (argument != name || at + 1 >= arguments.size()) return false;
  value = arguments[++at];
  return true;
}

Options Parse(const std::vector<std::string>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); i++) {
    const std::string& argument = arguments[i];
    std::string value;
    if (argument == "-h" || argument == "--help")
      options.help = true;
    else if (argument == "--version")
      options.version = true;
    else if (argument == "-L" || argument == "--list-gpus")
      options.list = true;
    else if (argument == "-q" || argument == "--query")
      options.details = true;
    else if (argument == "-r" || argument == "--gpu-reset")
      options.reset = true;
    else if (TakeValue(arguments, i, "-i", value) || TakeValue(arguments, i, "--id", value))
      options.ids = SplitCommas(value);
    else if (TakeValue(arguments, i, "-c", value) ||
             TakeValue(arguments, i, "--compute-mode", value))
      options.compute_mode = value;
    else if (TakeValue(arguments, i, "-mig", value) ||
             TakeValue(arguments, i, "--multi-instance-gpu", value))
      options.mig_mode = value;
    else if (TakeValue(arguments, i, "--query-gpu", value))
      options.query_gpu = value;
    else if (TakeValue(arguments, i, "--query-compute-apps", value))
      options.query_processes = value;
    else if (TakeValue(arguments, i, "--format", value))
      options.format = value;
    else
      options.wrong = argument;
  }
  return options;
}

void PrintHelp() {
  std::puts(
      "nvidia-smi of a simulated machine (penstock-sim)\n"
      "\n"
      "  nvidia-smi                                  the table\n"
      "  -L, --list-gpus                             one line a GPU\n"
      "  --query-gpu=FIELD,... --format=csv[,noheader][,nounits]\n"
      "  --query-compute-apps=FIELD,... --format=csv[,noheader][,nounits]\n"
      "  -q                                          details\n"
      "  -r, --gpu-reset                             reset, all GPUs or those of -i\n"
      "  -c, --compute-mode=MODE                     DEFAULT or 0, PROHIBITED or 2, "
      "EXCLUSIVE_PROCESS or 3\n"
      "  -mig, --multi-instance-gpu=MODE             0 or DISABLED, 1 or ENABLED\n"
      "  mig -h                                      MIG: profiles, placements, instances\n"
      "  -i, --id=ID,...                             index, UUID or PCI address\n"
      "  --version, -h, --help\n"
      "\n"
      "Example: nvidia-smi --query-gpu=index,name,memory.total --format=csv,noheader\n"
      "\n"
      "Exit status: 0 success, 2 bad argument, 3 not available, 4 no permission, 6 not found, 9 "
      "driver not loaded,\n"
      "12 library not found, 15 GPU lost, 255 other.");
}

CsvOptions ReadFormat(const std::string& fields, const std::string& format, std::string& wrong) {
  CsvOptions options;
  options.fields = SplitCommas(fields);
  const auto words = SplitCommas(format);
  if (words.empty() || words[0] != "csv")
    wrong =
        format.empty() ? "\"--format=\" argument is required." : "Unsupported format: " + format;
  for (const std::string& word : words) {
    if (word == "noheader")
      options.header = false;
    else if (word == "nounits")
      options.units = false;
    else if (word != "csv" && wrong.empty())
      wrong = "Unsupported format: " + word;
  }
  return options;
}

int RunQuery(const Nvml& nvml, const Options& options, const Gpus& gpus) {
  std::string wrong;
  const bool of_gpus = !options.query_gpu.empty();
  const CsvOptions csv =
      ReadFormat(of_gpus ? options.query_gpu : options.query_processes, options.format, wrong);
  if (!wrong.empty()) {
    std::puts(wrong.c_str());
    return kBadArgument;
  }
  return of_gpus ? QueryGpus(nvml, gpus, csv) : QueryProcesses(gpus, csv);
}

void ReportLost(const Nvml& nvml, const Gpus& gpus) {
  for (const Unreachable& gpu : gpus.lost) {
    const char* advice = gpu.code == NV_GPU_IS_LOST
                             ? "GPU is lost.  Reboot the system to recover this GPU"
                             : nullptr;
    std::fprintf(stderr, "Unable to determine the device handle for GPU%u: %s\n", gpu.index,
                 advice ? advice : nvml.ErrorString(gpu.code).c_str());
  }
}

int RunWithGpus(const Nvml& nvml, const Options& options) {
  if (options.reset) return ResetGpus(nvml, options.ids);
  Gpus gpus = FindGpus(nvml);
  if (gpus.found.empty() && gpus.lost.empty()) {
    std::puts("No devices were found");
    return kNotFound;
  }
  std::string unknown;
  if (!Select(gpus, options.ids, unknown)) {
    std::printf("No devices were found\nInvalid device id: %s\n", unknown.c_str());
    return kNotFound;
  }
  ReportLost(nvml, gpus);
  int status = kOk;
  if (options.list)
    status = ListGpus(gpus);
  else if (!options.query_gpu.empty() || !options.query_processes.empty())
    status = RunQuery(nvml, options, gpus);
  else if (!options.compute_mode.empty())
    status = SetComputeMode(nvml, gpus, options.compute_mode);
  else if (!options.mig_mode.empty())
    status = SetMigMode(nvml, gpus, options.mig_mode);
  else if (options.details)
    status = PrintDetails(nvml, gpus);
  else
    status = PrintTable(nvml, gpus);
  return status == kOk && gpus.found.empty() ? kGpuLost : status;
}

int Run(const std::vector<std::string>& arguments) {
  if (!arguments.empty() && arguments[0] == "mig")
    return RunMig({arguments.begin() + 1, arguments.end()});
  const Options options = Parse(arguments);
  if (!options.wrong.empty()) {
    std::printf(
        "Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\nOption "
        "\"%s\" is not recognized.\n",
        options.wrong.c_str());
    return kBadArgument;
  }
  if (options.help) {
    PrintHelp();
    return kOk;
  }
  const Nvml nvml;
  if (nvml.result() != InitResult::kOk) return ReportInit(nvml);
  if (options.version) {
    std::printf(
        "NVIDIA-SMI version  : %s\nNVML version        : %s\nDRIVER version      : %s\nCUDA "
        "Version        : %s\n",
        nvml.DriverVersion().c_str(), nvml.NvmlVersion().c_str(), nvml.DriverVersion().c_str(),
        nvml.CudaVersion().c_str());
    return kOk;
  }
  return RunWithGpus(nvml, options);
}

}  // namespace

std::string Timestamp(const char* format) {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[64];
  std::strftime(text, sizeof text, format, &local);
  return text;
}

std::string BusId(const Gpu& gpu) {
  const auto pci = gpu.Pci();
  return pci ? pci->busId : "[N/A]";
}

int ListGpus(const Gpus& gpus) {
  for (const Gpu& gpu : gpus.found) {
    std::printf("GPU %u: %s (UUID: %s)\n", gpu.index(),
                gpu.Text("nvmlDeviceGetName").value_or("N/A").c_str(),
                gpu.Text("nvmlDeviceGetUUID").value_or("N/A").c_str());
    for (const MigDevice& mig : MigDevicesOf(gpu))
      std::printf("  %-15s Device %2u: (UUID: %s)\n", mig.name.c_str(), mig.index,
                  mig.uuid.c_str());
  }
  return kOk;
}

}  // namespace smi

int main(int argc, char** argv) { return smi::Run({argv + 1, argv + argc}); }
