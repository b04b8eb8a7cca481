#include "backend/nvidia/compute/vector_add.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace penstock::backend::nvidia::cuda {

namespace {

// vectorAdd(a, b, sum, n): the thread i of the grid sets sum[i] = a[i] + b[i] where i < n.
constexpr char kPtx[] = R"(
.version 6.0
.target sm_50
.address_size 64

.visible .entry vectorAdd(.param .u64 a, .param .u64 b, .param .u64 sum, .param .u32 n)
{
    .reg .pred %past;
    .reg .b32 %block, %size, %thread, %i, %n;
    .reg .b64 %a, %b, %sum, %offset;
    .reg .f32 %x, %y, %z;

    mov.u32 %block, %ctaid.x;
    mov.u32 %size, %ntid.x;
    mov.u32 %thread, %tid.x;
    mad.lo.s32 %i, %block, %size, %thread;
    ld.param.u32 %n, [n];
    setp.ge.u32 %past, %i, %n;
    @%past bra done;

    ld.param.u64 %a, [a];
    ld.param.u64 %b, [b];
    ld.param.u64 %sum, [sum];
    cvta.to.global.u64 %a, %a;
    cvta.to.global.u64 %b, %b;
    cvta.to.global.u64 %sum, %sum;
    mul.wide.u32 %offset, %i, 4;
    add.s64 %a, %a, %offset;
    add.s64 %b, %b, %offset;
    add.s64 %sum, %sum, %offset;
    ld.global.f32 %x, [%a];
    ld.global.f32 %y, [%b];
    add.f32 %z, %x, %y;
    st.global.f32 [%sum], %z;
done:
    ret;
}
)";

/// "GPU-…" or "MIG-…" of a device's 16 bytes, without the prefix.
std::string Hex(const CuUuid& uuid) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < uuid.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[uuid[i] >> 4];
    text += kDigits[uuid[i] & 15];
  }
  return text;
}

bool IsIndex(std::string_view text) {
  return !text.empty() && text.size() < 5 &&
         text.find_first_not_of("0123456789") == std::string_view::npos;
}

base::Result<CuDevice> Choose(const Cuda& cuda, const std::string& wanted) {
  const CudaFunctions& api = cuda.api();
  int count = 0;
  TRY(cuda.Check(api.device_count(&count), "cuDeviceGetCount"));
  if (count == 0) return cuda.Check(kNoDevice, "cuDeviceGetCount").error();
  const int index = wanted.empty() ? 0 : IsIndex(wanted) ? std::stoi(wanted) : -1;
  for (int i = 0; i < count; ++i) {
    CuDevice device = 0;
    CuUuid uuid{};
    TRY(cuda.Check(api.device(&device, i), "cuDeviceGet"));
    TRY(cuda.Check(api.device_uuid(&uuid, device), "cuDeviceGetUuid"));
    if (i == index || wanted == "GPU-" + Hex(uuid) || wanted == "MIG-" + Hex(uuid)) return device;
  }
  return base::Error(base::Code::kNotFound, "no visible GPU is " + wanted + "; " +
                                                std::to_string(count) +
                                                " are visible, see nvidia-smi -L");
}

/// A context of a device, current on this thread.
class CurrentContext {
 public:
  static base::Result<CurrentContext> Create(const Cuda& cuda, CuDevice device) {
    CuContext context = nullptr;
    TRY(cuda.Check(cuda.api().create_context(&context, 0, device), "cuCtxCreate"));
    return CurrentContext(cuda, context);
  }
  CurrentContext(CurrentContext&& other) noexcept
      : cuda_(other.cuda_), context_(std::exchange(other.context_, nullptr)) {}
  CurrentContext& operator=(CurrentContext&&) = delete;
  ~CurrentContext() {  // frees its memory, too
    if (context_ != nullptr) cuda_.api().destroy_context(context_);
  }

 private:
  CurrentContext(const Cuda& cuda, CuContext context) : cuda_(cuda), context_(context) {}

  const Cuda& cuda_;
  CuContext context_;
};

base::Result<CuPointer> Allocate(const Cuda& cuda, std::size_t bytes) {
  CuPointer pointer = 0;
  TRY(cuda.Check(cuda.api().allocate(&pointer, bytes), "cuMemAlloc"));
  return pointer;
}

base::Result<CuFunction> LoadKernel(const Cuda& cuda) {
  CuModule loaded = nullptr;
  CuFunction kernel = nullptr;
  TRY(cuda.Check(cuda.api().load_module(&loaded, kPtx), "cuModuleLoadData"));
  TRY(cuda.Check(cuda.api().find_kernel(&kernel, loaded, "vectorAdd"), "cuModuleGetFunction"));
  return kernel;
}

base::Status Compare(const std::vector<float>& a, const std::vector<float>& b,
                     const std::vector<float>& sum) {
  for (std::size_t i = 0; i < sum.size(); ++i)
    if (!(std::fabs(a[i] + b[i] - sum[i]) <= 1e-5F))  // false for NaN, too
      return base::Error(base::Code::kDataLoss,
                         "the GPU computed a wrong sum: element " + std::to_string(i) + " is " +
                             std::to_string(sum[i]) + " instead of " + std::to_string(a[i] + b[i]));
  return {};
}

base::Status AddOnDevice(const Cuda& cuda, const VectorAdd& wanted) {
  const CudaFunctions& api = cuda.api();
  const auto elements = static_cast<std::size_t>(wanted.elements);
  const std::size_t bytes = elements * sizeof(float);
  std::vector<float> a(elements), b(elements), sum(elements, -1.0F);
  for (std::size_t i = 0; i < elements; ++i) {
    a[i] = static_cast<float>(i % 1021) / 1021.0F;
    b[i] = static_cast<float>(i % 977) / 977.0F;
  }
  ASSIGN(CuFunction kernel, LoadKernel(cuda));
  ASSIGN(CuPointer device_a, Allocate(cuda, bytes));
  ASSIGN(CuPointer device_b, Allocate(cuda, bytes));
  ASSIGN(CuPointer device_sum, Allocate(cuda, bytes));

  wanted.step("Copy input data from the host memory to the CUDA device");
  TRY(cuda.Check(api.to_device(device_a, a.data(), bytes), "cuMemcpyHtoD"));
  TRY(cuda.Check(api.to_device(device_b, b.data(), bytes), "cuMemcpyHtoD"));
  TRY(cuda.Check(api.to_device(device_sum, sum.data(), bytes), "cuMemcpyHtoD"));

  auto count = static_cast<std::uint32_t>(elements);
  const unsigned blocks = (count + kBlock - 1) / kBlock;
  wanted.step("CUDA kernel launch with " + std::to_string(blocks) + " blocks of " +
              std::to_string(kBlock) + " threads");
  void* parameters[] = {&device_a, &device_b, &device_sum, &count};
  TRY(cuda.Check(api.launch(kernel, blocks, 1, 1, kBlock, 1, 1, 0, nullptr, parameters, nullptr),
                 "cuLaunchKernel"));
  TRY(cuda.Check(api.synchronize(), "cuCtxSynchronize"));

  wanted.step("Copy output data from the CUDA device to the host memory");
  TRY(cuda.Check(api.to_host(sum.data(), device_sum, bytes), "cuMemcpyDtoH"));
  return Compare(a, b, sum);
}

}  // namespace

std::string_view VectorAddPtx() { return kPtx; }

base::Status AddVectors(const Cuda& cuda, const VectorAdd& wanted) {
  TRY(cuda.Check(cuda.api().init(0), "cuInit"));
  ASSIGN(CuDevice device, Choose(cuda, wanted.device));
  ASSIGN(CurrentContext context, CurrentContext::Create(cuda, device));
  wanted.step("[Vector addition of " + std::to_string(wanted.elements) + " elements]");
  return AddOnDevice(cuda, wanted);
}

}  // namespace penstock::backend::nvidia::cuda
