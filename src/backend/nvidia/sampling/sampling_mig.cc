// GPM has samples of whole GPU instances. They are taken through the GPU that the instance is on.
#include "backend/nvidia/sampling/sampling_mig.h"

#include "backend/nvidia/sampling/sampling_calls.h"
#include "backend/nvidia/sampling/sampling_traffic.h"

namespace penstock::backend::nvidia {
namespace {

/// DCGM 4.6, dcgmlib/src/dcgm_fields.cpp: the fields of profiling up to 1016 with the entity level
/// GPU_I or GPU_CI; those of PCIe and NVLink have the level GPU. DcgmCacheManager.cpp: the fields
/// that it reads from the handle of an instance. Video engines and counters of cycles are left out.
bool IsOfInstance(const NvmlQuery& query) {
  constexpr unsigned kFirstUnit = 1, kLastUnit = 13;  // NVML_GPM_METRIC_GRAPHICS_UTIL to FP16_UTIL
  return query.call == NvmlCall::kMemory || query.call == NvmlCall::kBar1 ||
         (query.call == NvmlCall::kGpm && query.number >= kFirstUnit && query.number <= kLastUnit);
}

}  // namespace

void PrepareInstance(SampledGpu& instance) {
  for (std::size_t i = 0; i < instance.missing.size(); ++i)
    instance.missing[i] = !IsOfInstance(QueryOf(static_cast<device::QuantityId>(i)));
}

void ReadInstance(SampleBuilder& builder, bool measured) {
  ReadBoard(builder);
  if (builder.Of(NvmlCall::kGpm).empty()) return;
  const std::optional<bool> gpm =
      measured ? builder.gpu.gpm.Supported(builder.nvml_device) : std::optional(false);
  GpmBatch metrics;
  GpmQuantities activity(builder, gpm, metrics);
  metrics.Run(builder);
  activity.Give();
}

}  // namespace penstock::backend::nvidia
