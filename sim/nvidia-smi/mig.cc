// Implements `nvidia-smi mig` and -mig: instances and the mode.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <optional>
#include <utility>

#include "sim/nvidia-smi/commands.h"
#include "sim/nvidia-smi/instances.h"
#include "sim/nvidia-smi/mig_tables.h"

namespace smi {
namespace {

struct MigOptions {
  std::vector<std::string> gpus, instances, computes;
  std::string action;  // the short option of what to do
  std::vector<std::string> profiles;
  bool help = false, with_compute = false;
};

struct MigOption {
  const char *brief, *full;
  enum Kind { kFlag, kValue, kMaybe } kind;
};
// Actions come in the order in which the program prefers them if several are given.
constexpr MigOption kMigActions[] = {
    {"-lgip", "--list-gpu-instance-profiles", MigOption::kFlag},
    {"-lgipp", "--list-gpu-instance-possible-placements", MigOption::kFlag},
    {"-cgi", "--create-gpu-instance", MigOption::kValue},
    {"-dgi", "--destroy-gpu-instance", MigOption::kFlag},
    {"-lgi", "--list-gpu-instances", MigOption::kFlag},
    {"-lcip", "--list-compute-instance-profiles", MigOption::kFlag},
    {"-lcipp", "--list-compute-instance-possible-placements", MigOption::kFlag},
    {"-cci", "--create-compute-instance", MigOption::kMaybe},
    {"-dci", "--destroy-compute-instance", MigOption::kFlag},
    {"-lci", "--list-compute-instances", MigOption::kFlag}};
constexpr MigOption kMigOthers[] = {{"-h", "--help", MigOption::kFlag},
                                    {"-C", "--default-compute-instance", MigOption::kFlag},
                                    {"-i", "--id", MigOption::kValue},
                                    {"-gi", "--gpu-instance-id", MigOption::kValue},
                                    {"-ci", "--compute-instance-id", MigOption::kValue}};

constexpr const char* kHelp = R"(
    mig -- Multi Instance GPU management.

    Usage: nvidia-smi mig [options]

    Options include:
    [-h | --help]: Display help information.
    [-i | --id]: Enumeration index, PCI bus ID or UUID.
                 Provide comma separated values for more than one device.
    [-gi | --gpu-instance-id]: GPU instance ID.
                               Provide comma separated values for more than one GPU instance.
    [-ci | --compute-instance-id]: Compute instance ID.
                                   Provide comma separated values for more than one compute 
                                   instance.
    [-lgip | --list-gpu-instance-profiles]: List supported GPU instance profiles.
                                            Option -i can be used to restrict the command to
                                            run on a specific GPU.
    [-lgipp | --list-gpu-instance-possible-placements]: List possible GPU instance placements
                                                        in the following format, {Start}:Size.
                                                        Option -i can be used to restrict the
                                                        command to run on a specific GPU.
    [-C | --default-compute-instance]: Create compute instance with the default profile when used
                                       with the option to create a GPU instance (-cgi).
    [-cgi | --create-gpu-instance]: Create GPU instances for the given profile tuples. A profile
                                    tuple consists of a profile name or ID and an optional placement
                                    specifier, which consists of a colon and a placement start index.
                                    Provide comma separated values for more than one profile tuple.
                                    Option -i can be used to restrict the command to run on
                                    a specific GPU.
    [-dgi | --destroy-gpu-instance]: Destroy GPU instances.
                                     Options -i and -gi can be used individually or combined
                                     to restrict the command to run on a specific GPU or GPU
                                     instance.
    [-lgi | --list-gpu-instances]: List GPU instances.
                                   Option -i can be used to restrict the command to run on a
                                   specific GPU.
    [-lcip | --list-compute-instance-profiles]: List supported compute instance profiles.
                                                Options -i and -gi can be used individually or
                                                combined to restrict the command to run on a
                                                specific GPU or GPU instance.
    [-lcipp | --list-compute-instance-possible-placements]: List possible compute instance placements
                                                            in the following format, {Start}:Size.
                                                            Options -i and -gi can be used individually or
                                                            combined to restrict the command to run on a
                                                            specific GPU or GPU instance.
    [-cci | --create-compute-instance]: Create compute instance for the given profile name or IDs.
                                        Provide comma separated values for more than one profile.
                                        If no profile name or ID is given, then the default*
                                        compute instance profile ID will be used. Options -i and
                                        -gi can be used individually or combined to restrict the
                                        command to run on a specific GPU or GPU instance.
    [-dci | --destroy-compute-instance]: Destroy compute instances.
                                         Options -i, -gi and -ci can be used individually or
                                         combined to restrict the command to run on a specific
                                         GPU or GPU instance or compute instance.
    [-lci | --list-compute-instances]: List compute instances.
                                       Options -i and -gi can be used individually or combined
                                       to restrict the command to run on a specific GPU or GPU
                                       instance.

)";

// Splits "--id=0" into name and value.
std::pair<std::string, std::optional<std::string>> SplitOption(const std::string& argument) {
  const std::size_t equals = argument.find('=');
  if (equals == std::string::npos) return {argument, std::nullopt};
  return {argument.substr(0, equals), argument.substr(equals + 1)};
}

const MigOption* FindOption(const std::string& name, bool& action) {
  const auto named = [&](const MigOption& option) {
    return name == option.brief || name == option.full;
  };
  const auto* at = std::find_if(std::begin(kMigActions), std::end(kMigActions), named);
  action = at != std::end(kMigActions);
  if (action) return at;
  at = std::find_if(std::begin(kMigOthers), std::end(kMigOthers), named);
  return at == std::end(kMigOthers) ? nullptr : at;
}

void Take(MigOptions& options, const MigOption& option, bool action,
          const std::optional<std::string>& value) {
  const std::string name = option.brief;
  const auto place = [](const std::string& brief) {
    return std::find_if(std::begin(kMigActions), std::end(kMigActions),
                        [&](const MigOption& one) { return brief == one.brief; });
  };
  if (action && (options.action.empty() || place(name) < place(options.action)))
    options.action = name;
  if (name == "-h") options.help = true;
  if (name == "-C") options.with_compute = true;
  if (!value) return;
  if (name == "-i") options.gpus = SplitCommas(*value);
  if (name == "-gi") options.instances = SplitCommas(*value);
  if (name == "-ci") options.computes = SplitCommas(*value);
  if (action) options.profiles = SplitCommas(*value);
}

// Prints what is wrong, and returns nothing then.
std::optional<MigOptions> ParseMig(const std::vector<std::string>& arguments) {
  MigOptions options;
  for (std::size_t i = 0; i < arguments.size(); i++) {
    auto [name, value] = SplitOption(arguments[i]);
    bool action = false;
    const MigOption* option = FindOption(name, action);
    if (!option) {
      std::printf("Option \"%s\" is not recognized.\n", arguments[i].c_str());
      return std::nullopt;
    }
    const bool more = i + 1 < arguments.size() && arguments[i + 1].rfind('-', 0) != 0;
    if (option->kind != MigOption::kFlag && !value && more) value = arguments[++i];
    if (option->kind == MigOption::kValue && !value) {
      std::printf("Option \"%s\" is missing its value.\n", name.c_str());
      return std::nullopt;
    }
    Take(options, *option, action, value);
  }
  return options;
}

int Failed(const Nvml& nvml, NvReturn code, const char* doing) {
  std::printf("Failed to %s: %s\n", doing, nvml.ErrorString(code).c_str());
  return code < 256 ? static_cast<int>(code) : kOther;
}

// Whether a profile's name ("MIG 3g.20gb" or without "MIG "), or its id, is `text`.
template <typename Profile>
bool IsCalled(const Profile& profile, const std::string& text) {
  return text == profile.name || "MIG " + text == profile.name ||
         text == std::to_string(profile.id);
}

template <typename Profile>
const Profile* FindProfile(const std::vector<Profile>& all, const std::string& text) {
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const Profile& one) { return IsCalled(one, text); });
  return at == all.end() ? nullptr : &*at;
}

// Creates a compute instance and reports it. `call` says of what for the error.
NvReturn CreateCompute(const Instance& in, const NvComputeProfile2& profile) {
  const Nvml& nvml = in.gpu->nvml();
  NvComputeInstance made = nullptr;
  NvComputeInstanceInfo info{};
  NvReturn result = nvml.Call("nvmlGpuInstanceCreateComputeInstance", in.handle, profile.id, &made);
  if (result != NV_SUCCESS) return result;
  result = nvml.Call("nvmlComputeInstanceGetInfo_v2", made, &info);
  if (result == NV_SUCCESS)
    std::printf(
        "Successfully created compute instance ID %2u on GPU %2u GPU instance ID %2u using profile "
        "%s (ID %2u)\n",
        info.id, in.gpu->index(), in.info.id, profile.name, profile.id);
  return result;
}

// The default is the profile with all slices of the GPU instance.
std::optional<NvComputeProfile2> DefaultProfile(const Instance& in) {
  for (const NvComputeProfile2& profile : ProfilesOf(in))
    if (profile.sliceCount == in.profile.sliceCount) return profile;
  return std::nullopt;
}

NvReturn CreateInstance(const Gpu& gpu, const std::string& tuple, bool with_compute) {
  const Nvml& nvml = gpu.nvml();
  const std::size_t colon = tuple.find(':');
  const std::vector<NvGpuInstanceProfile2> profiles = ProfilesOf(gpu);
  const NvGpuInstanceProfile2* profile = FindProfile(profiles, tuple.substr(0, colon));
  unsigned start = 0;
  const bool placed =
      colon != std::string::npos && std::sscanf(tuple.c_str() + colon, ":%u", &start) == 1;
  Instance made{&gpu, nullptr, {}, profile ? *profile : NvGpuInstanceProfile2{}};
  NvReturn result = NV_INVALID_ARGUMENT;
  if (profile && placed) {
    NvPlacement at{start, 0};
    NvPlacement all[32];
    NvUint count = 0;
    if (nvml.Call("nvmlDeviceGetGpuInstancePossiblePlacements_v2", gpu.device(), profile->id,
                  static_cast<NvPlacement*>(all), &count) == NV_SUCCESS &&
        count > 0)
      at.size = all[0].size;
    result = nvml.Call("nvmlDeviceCreateGpuInstanceWithPlacement", gpu.device(), profile->id,
                       static_cast<const NvPlacement*>(&at), &made.handle);
  } else if (profile) {
    result = nvml.Call("nvmlDeviceCreateGpuInstance", gpu.device(), profile->id, &made.handle);
  }
  if (result == NV_SUCCESS) result = nvml.Call("nvmlGpuInstanceGetInfo", made.handle, &made.info);
  if (result != NV_SUCCESS) {
    std::printf("Unable to create a GPU instance on GPU %2u using profile %s: %s\n", gpu.index(),
                tuple.c_str(), nvml.ErrorString(result).c_str());
    return result;
  }
  std::printf("Successfully created GPU instance ID %2u on GPU %2u using profile %s (ID %2u)\n",
              made.info.id, gpu.index(), profile->name, profile->id);
  if (!with_compute) return NV_SUCCESS;
  const auto whole = DefaultProfile(made);
  result = whole ? CreateCompute(made, *whole) : NV_NOT_SUPPORTED;
  if (result != NV_SUCCESS)
    std::printf("Unable to create a default compute instance on GPU %2u GPU instance ID %2u: %s\n",
                gpu.index(), made.info.id, nvml.ErrorString(result).c_str());
  return result;
}

int CreateInstances(const std::vector<const Gpu*>& gpus, const MigOptions& options) {
  for (const Gpu* gpu : gpus) {
    for (const std::string& tuple : options.profiles) {
      if (tuple.empty()) continue;
      const NvReturn result = CreateInstance(*gpu, tuple, options.with_compute);
      if (result != NV_SUCCESS) return Failed(gpu->nvml(), result, "create GPU instances");
    }
  }
  return kOk;
}

int CreateComputes(const std::vector<Instance>& instances, std::vector<std::string> wanted) {
  const bool by_default = wanted.empty();
  if (by_default) wanted.emplace_back();
  for (const Instance& in : instances) {
    for (const std::string& text : wanted) {
      const Nvml& nvml = in.gpu->nvml();
      const std::vector<NvComputeProfile2> all = ProfilesOf(in);
      const auto whole = DefaultProfile(in);
      const NvComputeProfile2* profile = FindProfile(all, text);
      if (by_default) profile = whole ? &*whole : nullptr;
      const NvReturn result = profile ? CreateCompute(in, *profile) : NV_INVALID_ARGUMENT;
      if (result == NV_SUCCESS) continue;
      std::printf(
          "Unable to create a compute instance on GPU %2u GPU instance ID %2u using profile %s: "
          "%s\n",
          in.gpu->index(), in.info.id,
          by_default && profile ? std::to_string(profile->id).c_str() : text.c_str(),
          nvml.ErrorString(result).c_str());
      return Failed(nvml, result, "create compute instances");
    }
  }
  return kOk;
}

int DestroyInstances(const std::vector<Instance>& instances) {
  for (const Instance& instance : instances) {
    const Nvml& nvml = instance.gpu->nvml();
    const NvReturn result = nvml.Call("nvmlGpuInstanceDestroy", instance.handle);
    if (result != NV_SUCCESS) {
      std::printf("Unable to destroy GPU instance ID %2u from GPU %2u: %s\n", instance.info.id,
                  instance.gpu->index(), nvml.ErrorString(result).c_str());
      return Failed(nvml, result, "destroy GPU instances");
    }
    std::printf("Successfully destroyed GPU instance ID %2u from GPU %2u\n", instance.info.id,
                instance.gpu->index());
  }
  return kOk;
}

int DestroyComputes(const std::vector<Compute>& computes) {
  for (const Compute& compute : computes) {
    const Gpu& gpu = *compute.in.gpu;
    const NvReturn result = gpu.nvml().Call("nvmlComputeInstanceDestroy", compute.handle);
    if (result != NV_SUCCESS) {
      std::printf(
          "Unable to destroy compute instance ID %2u from GPU %2u GPU instance ID %2u: %s\n",
          compute.info.id, gpu.index(), compute.in.info.id, gpu.nvml().ErrorString(result).c_str());
      return Failed(gpu.nvml(), result, "destroy compute instances");
    }
    std::printf("Successfully destroyed compute instance ID %2u from GPU %2u GPU instance ID %2u\n",
                compute.info.id, gpu.index(), compute.in.info.id);
  }
  return kOk;
}

int None(const char* what, int status) {
  std::puts(what);
  return status;
}

int RunOnComputes(const std::vector<Instance>& instances, const MigOptions& options) {
  const std::vector<Compute> computes = ComputesIn(instances, options.computes);
  if (computes.empty()) return None("No compute instances found: Not Found", kNotFound);
  if (options.action == "-dci") return DestroyComputes(computes);
  PrintComputes(computes);
  return kOk;
}

int RunOnInstances(const std::vector<const Gpu*>& gpus, const MigOptions& options) {
  // The list of GPU instances ignores their ids.
  const std::vector<Instance> instances =
      InstancesOn(gpus, options.action == "-lgi" ? std::vector<std::string>{} : options.instances);
  if (instances.empty()) return None("No GPU instances found: Not Found", kNotFound);
  if (options.action == "-dgi") return DestroyInstances(instances);
  if (options.action == "-cci") return CreateComputes(instances, options.profiles);
  if (options.action == "-dci" || options.action == "-lci")
    return RunOnComputes(instances, options);
  if (options.action == "-lgi") PrintInstances(instances);
  if (options.action == "-lcip") PrintComputeProfiles(instances);
  if (options.action == "-lcipp") PrintComputePlacements(instances);
  return kOk;
}

template <typename Keep>
std::vector<const Gpu*> Filtered(const std::vector<const Gpu*>& gpus, Keep keep) {
  std::vector<const Gpu*> kept;
  for (const Gpu* gpu : gpus)
    if (keep(*gpu)) kept.push_back(gpu);
  return kept;
}

}  // namespace

int RunMig(const std::vector<std::string>& arguments) {
  const auto options = ParseMig(arguments);
  if (!options) return kBadArgument;
  if (options->help || arguments.empty()) return None(kHelp, kOk);
  const Nvml nvml;
  if (nvml.result() != InitResult::kOk) return ReportInit(nvml);
  Gpus found = FindGpus(nvml);
  std::string unknown;
  if (!Select(found, options->gpus, unknown) || found.found.empty())
    return None("No devices were found", kNotFound);
  std::vector<const Gpu*> gpus;
  for (const Gpu& gpu : found.found) gpus.push_back(&gpu);
  gpus = Filtered(gpus, [](const Gpu& gpu) { return gpu.Pair("nvmlDeviceGetMigMode", 0); });
  // Before 550, the program distinguishes neither GPUs without MIG from those not in its mode, nor
  // lists from changes.
  if (gpus.empty() && nvml.Branch() >= 550)
    return None("No MIG-supported devices found.", kNotFound);
  const bool profiles = options->action == "-lgip" || options->action == "-lgipp";
  if (!profiles || nvml.Branch() < 550) gpus = Filtered(gpus, InMigMode);
  if (gpus.empty())
    return None("No MIG-enabled devices found.", nvml.Branch() < 550 ? kNotFound : kOk);
  if (options->action == "-lgip") PrintProfiles(gpus);
  if (options->action == "-lgipp") PrintPlacements(gpus);
  if (profiles) return kOk;
  return options->action == "-cgi" ? CreateInstances(gpus, *options)
                                   : RunOnInstances(gpus, *options);
}

namespace {

void ReportPending(const Nvml& nvml, const Gpu& gpu, const char* verb, NvReturn activation) {
  const std::string bus = BusId(gpu);
  std::printf("Warning: MIG mode is in pending %s state for GPU %s:%s\n", verb, bus.c_str(),
              nvml.ErrorString(activation).c_str());
  if (activation == NV_IN_USE)
    std::printf(
        "%s is currently being used by one or more other processes (e.g. CUDA application or a "
        "monitoring application such as another instance of nvidia-smi). Please first kill all "
        "processes using the device and retry the command or reboot the system to make MIG mode "
        "effective.\n",
        bus.c_str());
}

}  // namespace

int SetMigMode(const Nvml& nvml, const Gpus& gpus, const std::string& mode) {
  const bool on = mode == "1" || mode == "ENABLED";
  if (!on && mode != "0" && mode != "DISABLED") {
    std::printf("Invalid MIG Mode: %s\nTerminating early due to previous errors.\n", mode.c_str());
    return kBadArgument;
  }
  for (const Gpu& gpu : gpus.found) {
    NvReturn activation = NV_SUCCESS;
    const NvReturn result =
        nvml.Call("nvmlDeviceSetMigMode", gpu.device(), NvUint{on}, &activation);
    if (result != NV_SUCCESS) {
      std::printf("Unable to %s MIG Mode for GPU %s: %s\n", on ? "enable" : "disable",
                  BusId(gpu).c_str(), nvml.ErrorString(result).c_str());
      if (result != NV_NOT_SUPPORTED) {
        std::puts("Terminating early due to previous errors.");
        return result < 256 ? static_cast<int>(result) : kOther;
      }
      std::puts("Treating as warning and moving on.");
    } else if (activation != NV_SUCCESS) {
      ReportPending(nvml, gpu, on ? "enable" : "disable", activation);
    } else {
      std::printf("%s MIG Mode for GPU %s\n", on ? "Enabled" : "Disabled", BusId(gpu).c_str());
    }
  }
  std::puts("All done.");
  return kOk;
}

}  // namespace smi
