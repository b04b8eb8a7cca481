#include "backend/nvidia/nvml.h"

#include <array>
#include <initializer_list>
#include <utility>

#include "backend/nvidia/dialect/dialect.h"
#include "backend/nvidia/dialect/kinds.h"

namespace penstock::backend::nvidia {
namespace {

Error Unloadable(const Error& error) {
  return {Code::kFailedPrecondition, "the NVIDIA driver library cannot be loaded (" +
                                         error.message() +
                                         "): reinstall the driver for this machine"};
}

Result<os::Library> FromOwnRoot() {
  auto library = os::Library::Load(std::string(kLibraryName));
  if (library.ok() || library.error().code() != Code::kNotFound) return library;
  for (const std::string_view folder : kLibraryFolders) {
    library = os::Library::Load(std::string(folder) + "/" + std::string(kLibraryName));
    if (library.ok() || library.error().code() != Code::kNotFound) return library;
  }
  return library;
}

/// A library of another architecture may be beside the right one: continue the search, and report
/// it if no other is found.
Result<os::Library> FromRoot(const std::string& path) {
  ASSIGN(const os::Root root, os::Root::Open(path));
  Result<os::Library> best = Error(Code::kNotFound, "");
  for (const std::string_view folder : kLibraryFolders) {
    const std::string file = std::string(folder) + "/" + std::string(kLibraryName);
    if (!root.Exists(file)) continue;
    auto library = os::Library::LoadFrom(root, file);
    if (library.ok()) return library;
    if (best.error().code() == Code::kNotFound) best = std::move(library);
  }
  return best;
}

Result<os::Library> LoadLibrary(const device::Paths& paths) {
  if (!paths.library.empty()) return os::Library::Load(paths.library);
  return paths.driver_root == "/" ? FromOwnRoot() : FromRoot(paths.driver_root);
}

/// Binds the first of the names that the library has; returns its index in the list, or -1.
template <typename... P>
int Bind(const os::Library& library, Function<P...>& function,
         std::initializer_list<const char*> names) {
  function.name = *names.begin();
  int place = 0;
  for (const char* name : names) {
    if (void* symbol = library.Symbol(name); symbol != nullptr) {
      function.name = name;
      function.pointer = reinterpret_cast<abi::Return (*)(P...)>(symbol);
      return place;
    }
    ++place;
  }
  return -1;
}

void BindIdentity(const os::Library& library, Functions& f) {
  Bind(library, f.init, {"nvmlInit_v2", "nvmlInit"});
  Bind(library, f.shutdown, {"nvmlShutdown"});
  Bind(library, f.driver_version, {"nvmlSystemGetDriverVersion"});
  Bind(library, f.cuda_version,
       {"nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"});
  Bind(library, f.count, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"});
  Bind(library, f.handle_by_index, {"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"});
  Bind(library, f.uuid, {"nvmlDeviceGetUUID"});
  Bind(library, f.name, {"nvmlDeviceGetName"});
  Bind(library, f.serial, {"nvmlDeviceGetSerial"});
  Bind(library, f.vbios, {"nvmlDeviceGetVbiosVersion"});
  Bind(library, f.part_number, {"nvmlDeviceGetBoardPartNumber"});
  Bind(library, f.inforom, {"nvmlDeviceGetInforomVersion"});
  Bind(library, f.inforom_image, {"nvmlDeviceGetInforomImageVersion"});
  Bind(library, f.minor, {"nvmlDeviceGetMinorNumber"});
  Bind(library, f.brand, {"nvmlDeviceGetBrand"});
  Bind(library, f.pci,
       {"nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo"});
  Bind(library, f.compute_capability, {"nvmlDeviceGetCudaComputeCapability"});
  Bind(library, f.virtualization_mode, {"nvmlDeviceGetVirtualizationMode"});
}

void BindMig(const os::Library& library, Functions& f) {
  Bind(library, f.mig_mode, {"nvmlDeviceGetMigMode"});
  Bind(library, f.mig_device_by_index, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  Bind(library, f.mig_devices_most, {"nvmlDeviceGetMaxMigDeviceCount"});
  Bind(library, f.gpu_instance_id, {"nvmlDeviceGetGpuInstanceId"});
  Bind(library, f.compute_instance_id, {"nvmlDeviceGetComputeInstanceId"});
  Bind(library, f.attributes, {"nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes"});
  Bind(library, f.gpu_instance_profile, {"nvmlDeviceGetGpuInstanceProfileInfo"});
  Bind(library, f.gpu_instance_profile_v2, {"nvmlDeviceGetGpuInstanceProfileInfoV"});
  Bind(library, f.gpu_instance_placements,
       {"nvmlDeviceGetGpuInstancePossiblePlacements_v2",
        "nvmlDeviceGetGpuInstancePossiblePlacements"});
  Bind(library, f.gpu_instances, {"nvmlDeviceGetGpuInstances"});
  Bind(library, f.gpu_instance_info, {"nvmlGpuInstanceGetInfo"});
}

void BindMigControl(const os::Library& library, Functions& f) {
  Bind(library, f.set_mig_mode, {"nvmlDeviceSetMigMode"});
  Bind(library, f.create_gpu_instance, {"nvmlDeviceCreateGpuInstance"});
  Bind(library, f.create_gpu_instance_at, {"nvmlDeviceCreateGpuInstanceWithPlacement"});
  Bind(library, f.gpu_instance_by_id, {"nvmlDeviceGetGpuInstanceById"});
  Bind(library, f.destroy_gpu_instance, {"nvmlGpuInstanceDestroy"});
  Bind(library, f.compute_instance_profile, {"nvmlGpuInstanceGetComputeInstanceProfileInfo"});
  Bind(library, f.create_compute_instance, {"nvmlGpuInstanceCreateComputeInstance"});
  Bind(library, f.create_compute_instance_at,
       {"nvmlGpuInstanceCreateComputeInstanceWithPlacement"});
  Bind(library, f.compute_instance_by_id, {"nvmlGpuInstanceGetComputeInstanceById"});
  Bind(library, f.compute_instance_placements,
       {"nvmlGpuInstanceGetComputeInstancePossiblePlacements"});
  Bind(library, f.compute_instance_info, {"nvmlComputeInstanceGetInfo_v2"});
  Bind(library, f.destroy_compute_instance, {"nvmlComputeInstanceDestroy"});
}

void BindPlacement(const os::Library& library, Functions& f) {
  Bind(library, f.max_pcie_generation, {"nvmlDeviceGetMaxPcieLinkGeneration"});
  Bind(library, f.max_pcie_width, {"nvmlDeviceGetMaxPcieLinkWidth"});
  Bind(library, f.common_ancestor, {"nvmlDeviceGetTopologyCommonAncestor"});
  Bind(library, f.nvlink_state, {"nvmlDeviceGetNvLinkState"});
  Bind(library, f.nvlink_remote_type, {"nvmlDeviceGetNvLinkRemoteDeviceType"});
  Bind(library, f.nvlink_remote_pci,
       {"nvmlDeviceGetNvLinkRemotePciInfo_v2", "nvmlDeviceGetNvLinkRemotePciInfo"});
  Bind(library, f.fabric, {"nvmlDeviceGetGpuFabricInfo"});
  Bind(library, f.fabric_v2, {"nvmlDeviceGetGpuFabricInfoV"});
}

void BindReadings(const os::Library& library, Functions& f) {
  Bind(library, f.memory, {"nvmlDeviceGetMemoryInfo"});
  Bind(library, f.memory_v2, {"nvmlDeviceGetMemoryInfo_v2"});
  Bind(library, f.utilization, {"nvmlDeviceGetUtilizationRates"});
  Bind(library, f.temperature, {"nvmlDeviceGetTemperature"});
  Bind(library, f.power, {"nvmlDeviceGetPowerUsage"});
  Bind(library, f.field_values, {"nvmlDeviceGetFieldValues"});
  Bind(library, f.remapped_rows, {"nvmlDeviceGetRemappedRows"});
  Bind(library, f.ecc_errors, {"nvmlDeviceGetTotalEccErrors"});
  f.short_processes[0] =
      Bind(library, f.processes[0],
           {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2",
            "nvmlDeviceGetComputeRunningProcesses"}) == 2;
  f.short_processes[1] =
      Bind(library, f.processes[1],
           {"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2",
            "nvmlDeviceGetGraphicsRunningProcesses"}) == 2;
  f.short_processes[2] = Bind(library, f.processes[2],
                              {"nvmlDeviceGetMPSComputeRunningProcesses_v3",
                               "nvmlDeviceGetMPSComputeRunningProcesses_v2",
                               "nvmlDeviceGetMPSComputeRunningProcesses"}) == 2;
}

void BindBoard(const os::Library& library, Functions& f) {
  Bind(library, f.clock_info, {"nvmlDeviceGetClockInfo"});
  Bind(library, f.max_clock_info, {"nvmlDeviceGetMaxClockInfo"});
  Bind(library, f.clock, {"nvmlDeviceGetClock"});
  Bind(library, f.application_clock, {"nvmlDeviceGetApplicationsClock"});
  Bind(library, f.threshold, {"nvmlDeviceGetTemperatureThreshold"});
  Bind(library, f.margin, {"nvmlDeviceGetMarginTemperature"});
  Bind(library, f.power_limit, {"nvmlDeviceGetPowerManagementLimit"});
  Bind(library, f.enforced_power_limit, {"nvmlDeviceGetEnforcedPowerLimit"});
  Bind(library, f.default_power_limit, {"nvmlDeviceGetPowerManagementDefaultLimit"});
  Bind(library, f.power_limits, {"nvmlDeviceGetPowerManagementLimitConstraints"});
  Bind(library, f.energy, {"nvmlDeviceGetTotalEnergyConsumption"});
  Bind(library, f.encoder, {"nvmlDeviceGetEncoderUtilization"});
  Bind(library, f.decoder, {"nvmlDeviceGetDecoderUtilization"});
  Bind(library, f.jpeg, {"nvmlDeviceGetJpgUtilization"});
  Bind(library, f.optical_flow, {"nvmlDeviceGetOfaUtilization"});
  Bind(library, f.bar1, {"nvmlDeviceGetBAR1MemoryInfo"});
  Bind(library, f.performance_state, {"nvmlDeviceGetPerformanceState"});
  Bind(library, f.fan, {"nvmlDeviceGetFanSpeed"});
  Bind(library, f.compute_mode, {"nvmlDeviceGetComputeMode"});
  Bind(library, f.persistence_mode, {"nvmlDeviceGetPersistenceMode"});
  // Named "throttle reasons" before driver 535, with the same bits.
  Bind(library, f.clocks_reasons,
       {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"});
  Bind(library, f.known_clocks_reasons,
       {"nvmlDeviceGetSupportedClocksEventReasons", "nvmlDeviceGetSupportedClocksThrottleReasons"});
  Bind(library, f.licensable_features, {"nvmlDeviceGetGridLicensableFeatures_v4"});
}

void BindTelemetry(const os::Library& library, Functions& f) {
  Bind(library, f.pcie_generation, {"nvmlDeviceGetCurrPcieLinkGeneration"});
  Bind(library, f.pcie_width, {"nvmlDeviceGetCurrPcieLinkWidth"});
  Bind(library, f.pcie_replays, {"nvmlDeviceGetPcieReplayCounter"});
  Bind(library, f.pcie_throughput, {"nvmlDeviceGetPcieThroughput"});
  Bind(library, f.remapped_banks, {"nvmlDeviceGetRowRemapperHistogram"});
  Bind(library, f.ecc_errors_by_location, {"nvmlDeviceGetMemoryErrorCounter"});
  Bind(library, f.nvlink_errors, {"nvmlDeviceGetNvLinkErrorCounter"});
  Bind(library, f.fabric_v3, {"nvmlDeviceGetGpuFabricInfoV"});
  Bind(library, f.gpm_support, {"nvmlGpmQueryDeviceSupport"});
  Bind(library, f.gpm_allocate, {"nvmlGpmSampleAlloc"});
  Bind(library, f.gpm_free, {"nvmlGpmSampleFree"});
  Bind(library, f.gpm_sample, {"nvmlGpmSampleGet"});
  Bind(library, f.gpm_mig_sample, {"nvmlGpmMigSampleGet"});
  Bind(library, f.gpm_metrics, {"nvmlGpmMetricsGet"});
  Bind(library, f.process_utilization, {"nvmlDeviceGetProcessUtilization"});
}

void BindEvents(const os::Library& library, Functions& f) {
  Bind(library, f.event_set_create, {"nvmlEventSetCreate"});
  Bind(library, f.event_set_free, {"nvmlEventSetFree"});
  Bind(library, f.supported_events, {"nvmlDeviceGetSupportedEventTypes"});
  Bind(library, f.register_events, {"nvmlDeviceRegisterEvents"});
  Bind(library, f.event_wait, {"nvmlEventSetWait_v2", "nvmlEventSetWait"});
}

struct Meaning {
  abi::Return code;
  Code canonical;
  std::string_view text;
};

constexpr std::array kMeanings{
    Meaning{abi::kUninitialized, Code::kUnavailable, "NVML is not initialized"},
    Meaning{abi::kInvalidArgument, Code::kInvalidArgument, "invalid argument"},
    Meaning{abi::kNotSupported, Code::kUnimplemented, "not supported"},
    Meaning{abi::kNoPermission, Code::kPermissionDenied, "no permission"},
    Meaning{abi::kAlreadyInitialized, Code::kAlreadyExists, "already initialized"},
    Meaning{abi::kNotFound, Code::kNotFound, "not found"},
    Meaning{abi::kInsufficientSize, Code::kOutOfRange, "insufficient size"},
    Meaning{abi::kInsufficientPower, Code::kFailedPrecondition,
            "external power cables are not attached properly"},
    Meaning{abi::kDriverNotLoaded, Code::kUnavailable, "the driver is not loaded"},
    Meaning{abi::kTimeout, Code::kDeadlineExceeded, "timeout"},
    Meaning{abi::kIrqIssue, Code::kUnavailable, "the kernel found an interrupt issue with a GPU"},
    Meaning{abi::kLibraryNotFound, Code::kNotFound, "a library of the driver was not found"},
    Meaning{abi::kFunctionNotFound, Code::kUnimplemented,
            "this driver does not have this function"},
    Meaning{abi::kCorruptedInforom, Code::kDataLoss, "the InfoROM is corrupted"},
    Meaning{abi::kGpuIsLost, Code::kDataLoss, "the GPU is lost"},
    Meaning{abi::kResetRequired, Code::kDataLoss, "the GPU must be reset"},
    Meaning{abi::kOperatingSystem, Code::kPermissionDenied,
            "the operating system or a cgroup denies access to the control device"},
    Meaning{abi::kLibRmVersionMismatch, Code::kFailedPrecondition,
            "library and kernel module have different versions"},
    Meaning{abi::kInUse, Code::kFailedPrecondition, "in use"},
    Meaning{abi::kMemory, Code::kResourceExhausted, "insufficient memory"},
    Meaning{abi::kNoData, Code::kUnavailable, "no data"},
    Meaning{abi::kVgpuEccNotSupported, Code::kUnimplemented, "not supported by a vGPU with ECC"},
    Meaning{abi::kInsufficientResources, Code::kResourceExhausted, "insufficient resources"},
    Meaning{abi::kFreqNotSupported, Code::kUnimplemented, "frequency not supported"},
    Meaning{abi::kArgumentVersionMismatch, Code::kUnimplemented,
            "this driver does not know this version of the call"},
    Meaning{abi::kDeprecated, Code::kUnimplemented, "the function is deprecated"},
    Meaning{abi::kNotReady, Code::kUnavailable, "not ready"},
    Meaning{abi::kGpuNotFound, Code::kNotFound, "no GPUs were found"},
    Meaning{abi::kInvalidState, Code::kFailedPrecondition, "in the wrong state"},
    Meaning{abi::kUnknown, Code::kUnknown, "unknown error"},
};

}  // namespace

Nvml::Nvml(os::Library library)
    : library_(std::move(library)), functions_(std::make_unique<Functions>()) {
  BindIdentity(library_, *functions_);
  BindMig(library_, *functions_);
  BindMigControl(library_, *functions_);
  BindPlacement(library_, *functions_);
  BindReadings(library_, *functions_);
  BindBoard(library_, *functions_);
  BindTelemetry(library_, *functions_);
  BindEvents(library_, *functions_);
}

Result<Nvml> Nvml::Load(const device::Paths& paths) {
  auto library = LoadLibrary(paths);
  if (library.ok()) return Nvml(*std::move(library));
  if (library.error().code() == Code::kNotFound) return Error(Code::kNotFound, NoLibrary(paths));
  return Unloadable(library.error());
}

Error ToError(abi::Return code, std::string_view function) {
  const std::string where(function);
  for (const Meaning& meaning : kMeanings)
    if (meaning.code == code) return {meaning.canonical, where + ": " + std::string(meaning.text)};
  return {Code::kUnknown, where + ": error " + std::to_string(code)};
}

}  // namespace penstock::backend::nvidia
