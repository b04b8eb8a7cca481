#include "backend/nvidia/sampling/sample_builder.h"

#include <algorithm>

namespace penstock::backend::nvidia {

SampleBuilder::SampleBuilder(NvmlDevice& a_device, SampledGpu& a_gpu,
                             const device::SampleRequest& request, base::TimePoint a_now)
    : nvml_device(a_device), gpu(a_gpu), now(a_now) {
  for (const device::QuantityId id : request.quantities) {
    if (id >= gpu.missing.size()) continue;
    if (gpu.missing[id]) {
      sample.unsupported.push_back(id);
    } else {
      wanted_.push_back({id, QueryOf(id)});
    }
  }
  std::ranges::stable_sort(
      wanted_, [](const Wanted& a, const Wanted& b) { return a.query.call < b.query.call; });
}

std::span<const Wanted> SampleBuilder::Of(NvmlCall call) const {
  const auto first =
      std::ranges::find_if(wanted_, [call](const Wanted& one) { return one.query.call == call; });
  const auto last = std::find_if(first, wanted_.end(),
                                 [call](const Wanted& one) { return one.query.call != call; });
  return {first, last};
}

void SampleBuilder::Missing(device::QuantityId id) {
  gpu.missing[id] = true;
  sample.unsupported.push_back(id);
}

void SampleBuilder::Missing(std::span<const Wanted> wanted) {
  for (const Wanted& one : wanted) Missing(one.id);
}

bool SampleBuilder::Answered(bool answered, std::span<const Wanted> wanted) {
  if (!answered && IsPermanent(nvml_device.last())) Missing(wanted);
  return answered;
}

const std::vector<unsigned>* SampleBuilder::Links() {
  if (gpu.links) return &*gpu.links;
  std::vector<unsigned> links;
  for (unsigned link = 0; link < abi::kMaxNvLinks; ++link) {
    unsigned state = 0;
    if (nvml_device.Call(nvml_device.nvml().nvlink_state, link, &state)) {
      links.push_back(link);
    } else if (!IsPermanent(nvml_device.last())) {
      return nullptr;
    } else if (nvml_device.last() == abi::kFunctionNotFound) {
      break;
    }
  }
  gpu.links = std::move(links);
  return &*gpu.links;
}

}  // namespace penstock::backend::nvidia
