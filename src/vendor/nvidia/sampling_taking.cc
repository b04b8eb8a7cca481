// See sampling_taking.h.
#include "vendor/nvidia/sampling_taking.h"

#include <algorithm>

namespace penstock::vendor::nvidia {

Taking::Taking(Questions& a_questions, SampledGpu& a_gpu, const device::SampleRequest& request, base::TimePoint a_now)
    : questions(a_questions), gpu(a_gpu), now(a_now) {
  for (const device::QuantityId id : request.quantities) {
    if (id >= gpu.missing.size()) continue;
    if (gpu.missing[id]) {
      sample.unsupported.push_back(id);
    } else {
      wanted_.push_back({id, WayOf(id)});
    }
  }
  std::stable_sort(wanted_.begin(), wanted_.end(), [](const Wanted& a, const Wanted& b) { return a.way.call < b.way.call; });
}

std::span<const Wanted> Taking::Of(Call call) const {
  const auto first = std::find_if(wanted_.begin(), wanted_.end(), [call](const Wanted& wanted) { return wanted.way.call == call; });
  const auto last = std::find_if(first, wanted_.end(), [call](const Wanted& wanted) { return wanted.way.call != call; });
  return {first, last};
}

void Taking::Missing(device::QuantityId id) {
  gpu.missing[id] = true;
  sample.unsupported.push_back(id);
}

void Taking::Missing(std::span<const Wanted> wanted) {
  for (const Wanted& one : wanted) Missing(one.id);
}

bool Taking::Answered(bool answered, std::span<const Wanted> wanted) {
  if (!answered && SaysNever(questions.last())) Missing(wanted);
  return answered;
}

const std::vector<unsigned>* Taking::Links() {
  if (gpu.links) return &*gpu.links;
  std::vector<unsigned> links;
  for (unsigned link = 0; link < abi::kMostNvLinks; ++link) {
    unsigned state = 0;
    if (questions.Ask(questions.nvml().nvlink_state, link, &state)) {
      links.push_back(link);
    } else if (!SaysNever(questions.last())) {
      return nullptr;
    } else if (questions.last() == abi::kFunctionNotFound) {
      break;
    }
  }
  gpu.links = std::move(links);
  return &*gpu.links;
}

}  // namespace penstock::vendor::nvidia
