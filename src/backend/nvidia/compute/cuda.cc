#include "backend/nvidia/compute/cuda.h"

#include <span>
#include <string_view>
#include <utility>

namespace penstock::backend::nvidia::cuda {

namespace {

constexpr char kLibraryName[] = "libcuda.so.1";

std::string_view RemedyFor(CuResult result) {
  switch (result) {
    case kNoDevice:
      return "no GPU is visible: see that the container requests one, that /dev/nvidia* exist in "
             "it, and that the driver is loaded (nvidia-smi)";
    case kDeviceUnavailable: return "the GPU is in exclusive mode and another process uses it";
    case kSystemNotReady:
      return "the GPUs' fabric is not ready: see that nvidia-fabricmanager runs";
    case kSystemDriverMismatch:
      return "the library's version is not that of the loaded kernel module: reload the driver, or "
             "restart the container";
    default: return "";
  }
}

}  // namespace

base::Result<Cuda> Cuda::Load(const std::string& path) {
  ASSIGN(os::Library library, os::Library::Load(path.empty() ? kLibraryName : path));
  CudaFunctions api;
  os::Symbols symbols{std::span(&library, 1)};
  symbols.Take(api.init, "cuInit");
  symbols.Take(api.error_name, "cuGetErrorName");
  symbols.Take(api.error_text, "cuGetErrorString");
  symbols.Take(api.device_count, "cuDeviceGetCount");
  symbols.Take(api.device, "cuDeviceGet");
  symbols.Take(api.device_uuid, "cuDeviceGetUuid_v2");  // also knows MIG devices; since 11.4
  symbols.Take(api.create_context, "cuCtxCreate_v2");
  symbols.Take(api.destroy_context, "cuCtxDestroy_v2");
  symbols.Take(api.load_module, "cuModuleLoadData");
  symbols.Take(api.find_kernel, "cuModuleGetFunction");
  symbols.Take(api.allocate, "cuMemAlloc_v2");
  symbols.Take(api.to_device, "cuMemcpyHtoD_v2");
  symbols.Take(api.to_host, "cuMemcpyDtoH_v2");
  symbols.Take(api.launch, "cuLaunchKernel");
  symbols.Take(api.synchronize, "cuCtxSynchronize");
  if (!symbols.missing().empty())
    return base::Error(base::Code::kUnimplemented, std::string(kLibraryName) + " has no " +
                                                       symbols.missing() +
                                                       ": the driver is older than 470, update it");
  return Cuda(std::move(library), api);
}

base::Status Cuda::Check(CuResult result, const char* call) const {
  if (result == kSuccess) return {};
  const char* name = nullptr;
  const char* text = nullptr;
  if (api_.error_name(result, &name) != kSuccess || name == nullptr) name = "unknown error";
  if (api_.error_text(result, &text) != kSuccess) text = nullptr;
  std::string message = std::string(call) + ": " + name + " (" + std::to_string(result) + ")";
  if (text != nullptr) message += std::string(": ") + text;
  if (const std::string_view remedy = RemedyFor(result); !remedy.empty())
    message += "; " + std::string(remedy);
  return base::Error(base::Code::kFailedPrecondition, message);
}

}  // namespace penstock::backend::nvidia::cuda
