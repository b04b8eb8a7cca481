#include "backend/nvidia/compute/cuda.h"

#include <span>
#include <string_view>
#include <utility>

#include "backend/nvidia/dialect/kinds.h"
#include "os/core/root.h"

namespace penstock::backend::nvidia::cuda {

namespace {

constexpr char kCudaLibrary[] = "libcuda.so.1";
/// Assembles PTX; libcuda opens it by its name, which is found if it is loaded already.
constexpr char kAssembler[] = "libnvidia-ptxjitcompiler.so.1";

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
  ASSIGN(os::Library library, os::Library::Load(path.empty() ? kCudaLibrary : path));
  std::vector<os::Library> libraries;
  libraries.push_back(std::move(library));
  return Bind(std::move(libraries));
}

base::Result<Cuda> Cuda::LoadBelow(const std::string& driver_root) {
  ASSIGN(const os::Root root, os::Root::Open(driver_root));
  base::Error why(base::Code::kNotFound, "there is no " + std::string(kCudaLibrary) +
                                             " below the driver root " + driver_root);
  for (const std::string_view folder : kLibraryFolders) {
    const std::string file = std::string(folder) + "/" + kCudaLibrary;
    if (!root.Exists(file)) continue;
    std::vector<os::Library> libraries;
    if (auto assembler = os::Library::LoadFrom(root, std::string(folder) + "/" + kAssembler);
        assembler.ok())
      libraries.push_back(*std::move(assembler));
    auto library = os::Library::LoadFrom(root, file);
    if (library.ok()) {
      libraries.insert(libraries.begin(), *std::move(library));
      return Bind(std::move(libraries));
    }
    // Of another architecture, perhaps: the right one may be in another folder.
    if (why.code() == base::Code::kNotFound) why = library.error();
  }
  return why;
}

base::Result<Cuda> Cuda::Bind(std::vector<os::Library> libraries) {
  CudaFunctions api;
  os::Symbols symbols{std::span(libraries).first(1)};
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
    return base::Error(base::Code::kUnimplemented, std::string(kCudaLibrary) + " has no " +
                                                       symbols.missing() +
                                                       ": the driver is older than 470, update it");
  return Cuda(std::move(libraries), api);
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
  const bool busy = result == kDeviceUnavailable || result == kOutOfMemory;
  return base::Error(busy ? base::Code::kResourceExhausted : base::Code::kFailedPrecondition,
                     message);
}

}  // namespace penstock::backend::nvidia::cuda
