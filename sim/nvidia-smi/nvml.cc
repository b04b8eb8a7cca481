#include "sim/nvidia-smi/nvml.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <unistd.h>

namespace smi {
namespace {

// Returns the program's folder, <root>/usr/bin.
std::string OwnFolder() {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
  if (size <= 0) return "";
  path[size] = 0;
  char* slash = std::strrchr(path, '/');
  if (slash) *slash = 0;
  return path;
}

// Opens the library that the driver installed beside this program, else the one that the loader
// finds.
void* OpenLibrary() {
  const std::string folder = OwnFolder();
  for (const std::string& path : {folder + "/../lib/x86_64-linux-gnu/libnvidia-ml.so.1",
                                  folder + "/libnvidia-ml.so.1", std::string("libnvidia-ml.so.1")})
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
  return nullptr;
}

}  // namespace

Nvml::Nvml() : library_(OpenLibrary()) {
  if (!library_) return;
  init_code_ = Call("nvmlInit_v2");
  result_ = init_code_ == NV_SUCCESS ? InitResult::kOk : InitResult::kFailed;
}

Nvml::~Nvml() {
  if (result_ == InitResult::kOk) Call("nvmlShutdown");
}

void* Nvml::Symbol(const char* name) const {
  if (!library_) return nullptr;
  auto [at, fresh] = symbols_.try_emplace(name, nullptr);
  if (fresh) at->second = dlsym(library_, name);
  return at->second;
}

std::string Nvml::ErrorString(NvReturn code) const {
  void* symbol = Symbol("nvmlErrorString");
  return symbol ? reinterpret_cast<const char* (*)(NvReturn)>(symbol)(code) : "Unknown Error";
}

std::string Nvml::DriverVersion() const {
  char text[80] = "";
  return Call("nvmlSystemGetDriverVersion", static_cast<char*>(text), NvUint{sizeof text}) ==
                 NV_SUCCESS
             ? text
             : "N/A";
}

unsigned Nvml::Branch() const { return static_cast<unsigned>(std::atoi(DriverVersion().c_str())); }

std::string Nvml::CudaVersion() const {
  int version = 0;
  if (Call("nvmlSystemGetCudaDriverVersion_v2", &version) != NV_SUCCESS) return "N/A";
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string Nvml::NvmlVersion() const {
  const std::string driver = DriverVersion();
  return driver.substr(0, driver.find('.', driver.find('.') + 1));
}

std::optional<std::string> Gpu::Text(const char* name) const {
  char text[96] = "";
  return nvml_.Call(name, device_, static_cast<char*>(text), NvUint{sizeof text}) == NV_SUCCESS
             ? std::optional<std::string>(text)
             : std::nullopt;
}

std::optional<NvUint> Gpu::Pair(const char* name, int which) const {
  NvUint values[2] = {0, 0};
  return nvml_.Call(name, device_, &values[0], &values[1]) == NV_SUCCESS
             ? std::optional(values[which])
             : std::nullopt;
}

std::optional<NvUlong> Gpu::Ecc(NvUint error, NvUint counter) const {
  NvUlong count = 0;
  return nvml_.Call("nvmlDeviceGetTotalEccErrors", device_, error, counter, &count) == NV_SUCCESS
             ? std::optional(count)
             : std::nullopt;
}

std::optional<long long> Gpu::Field(NvUint id) const {
  NvFieldValue field{};
  field.fieldId = id;
  if (nvml_.Call("nvmlDeviceGetFieldValues", device_, 1, &field) != NV_SUCCESS ||
      field.nvmlReturn != NV_SUCCESS)
    return std::nullopt;
  switch (field.valueType) {
    case NV_VALUE_UINT: return field.value.uiVal;
    case NV_VALUE_INT: return field.value.siVal;
    default: return static_cast<long long>(field.value.ullVal);
  }
}

std::optional<NvUint> Gpu::Remapped(int which) const {
  NvUint rows[4] = {};
  if (nvml_.Call("nvmlDeviceGetRemappedRows", device_, &rows[0], &rows[1], &rows[2], &rows[3]) !=
      NV_SUCCESS)
    return std::nullopt;
  return rows[which];
}

std::optional<NvUint> Gpu::RetiredPages(NvUint cause) const {
  NvUint count = 0;
  const NvReturn code = nvml_.Call("nvmlDeviceGetRetiredPages", device_, cause, &count,
                                   static_cast<NvUlong*>(nullptr));
  return code == NV_SUCCESS ? std::optional(count) : std::nullopt;
}

std::optional<Gpu::Memory> Gpu::MemoryMiB() const {
  NvMemory2 newer{};
  newer.version = NV_STRUCT_VERSION(NvMemory2, 2);
  if (nvml_.Call("nvmlDeviceGetMemoryInfo_v2", device_, &newer) == NV_SUCCESS)
    return Memory{newer.total >> 20, newer.used >> 20, newer.free >> 20, newer.reserved >> 20};
  const auto older = Struct<NvMemory>("nvmlDeviceGetMemoryInfo");
  if (!older) return std::nullopt;
  return Memory{older->total >> 20, older->used >> 20, older->free >> 20, std::nullopt};
}

void Gpu::AddProcesses(std::vector<Process>& all, const char* name, char type) const {
  NvProcess2 processes[128];
  NvUint count = 128;
  const std::string newest = std::string(name) + "_v3", older = std::string(name) + "_v2";
  if (nvml_.Call(newest.c_str(), device_, &count, static_cast<NvProcess2*>(processes)) !=
      NV_SUCCESS) {
    count = 128;
    if (nvml_.Call(older.c_str(), device_, &count, static_cast<NvProcess2*>(processes)) !=
        NV_SUCCESS)
      return;
  }
  for (NvUint i = 0; i < count; i++) {
    char text[256] = "";
    nvml_.Call("nvmlSystemGetProcessName", processes[i].pid, static_cast<char*>(text),
               NvUint{sizeof text});
    all.push_back({processes[i].pid, processes[i].usedGpuMemory, type,
                   text[0] ? text : "[Not Found]", processes[i].gpuInstanceId,
                   processes[i].computeInstanceId});
  }
}

std::vector<Process> Gpu::Processes() const {
  std::vector<Process> all;
  AddProcesses(all, "nvmlDeviceGetComputeRunningProcesses", 'C');
  AddProcesses(all, "nvmlDeviceGetMPSComputeRunningProcesses", 'M');
  AddProcesses(all, "nvmlDeviceGetGraphicsRunningProcesses", 'G');
  return all;
}

Gpus FindGpus(const Nvml& nvml) {
  Gpus gpus;
  NvUint count = 0;
  nvml.Call("nvmlDeviceGetCount_v2", &count);
  for (NvUint i = 0; i < count; i++) {
    NvDevice device = nullptr;
    NvReturn code = nvml.Call("nvmlDeviceGetHandleByIndex_v2", i, &device);
    // A loss that only getters report is detected here.
    char uuid[96];
    if (code == NV_SUCCESS)
      code = nvml.Call("nvmlDeviceGetUUID", device, static_cast<char*>(uuid), NvUint{sizeof uuid});
    if (code == NV_SUCCESS)
      gpus.found.emplace_back(nvml, i, device);
    else
      gpus.lost.push_back({i, code});
  }
  return gpus;
}

}  // namespace smi
