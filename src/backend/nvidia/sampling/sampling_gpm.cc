// Keeps one pair of samples per device, with a window between a tenth of a second and ten minutes.
#include "backend/nvidia/sampling/sampling_gpm.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "backend/nvidia/sampling/sampling_rates.h"

namespace penstock::backend::nvidia {

std::optional<bool> Gpm::Supported(NvmlDevice& nvml_device) {
  if (supported_) return supported_;
  abi::GpmSupport support{abi::kGpmSupport, 0};
  const abi::Device device = instance_ ? instance_->gpu : nvml_device.device();
  if (nvml_device.Note(nvml_.gpm_support(device, &support), nvml_.gpm_support.name)) {
    supported_ = support.supported != 0;
  } else if (IsPermanent(nvml_device.last())) {
    supported_ = false;
  }
  return supported_;
}

bool Gpm::Allocate(NvmlDevice& nvml_device) {
  for (abi::GpmSample* sample : {&before_, &now_})
    if (*sample == nullptr &&
        !nvml_device.Note(nvml_.gpm_allocate(sample), nvml_.gpm_allocate.name))
      return false;
  return true;
}

bool Gpm::TakeSample(NvmlDevice& nvml_device) {
  if (!instance_) return nvml_device.Call(nvml_.gpm_sample, now_);
  return nvml_device.Note(nvml_.gpm_mig_sample(instance_->gpu, instance_->id, now_),
                          nvml_.gpm_mig_sample.name);
}

void Gpm::Release() {
  for (abi::GpmSample* sample : {&before_, &now_})
    if (*sample != nullptr) nvml_.gpm_free(std::exchange(*sample, nullptr));
}

/// Gets metrics of the two samples; false if the call as a whole failed.
bool Gpm::Get(NvmlDevice& nvml_device, const unsigned* metrics, std::size_t count,
              GpmAnswer* answers) {
  const auto request = std::make_unique<abi::GpmMetrics>();
  *request = {};
  request->version = abi::kGpmMetrics;
  request->count = static_cast<unsigned>(count);
  request->first = before_;
  request->second = now_;
  for (std::size_t i = 0; i < count; ++i) request->metrics[i].metric = metrics[i];
  if (!nvml_device.Note(nvml_.gpm_metrics(request.get()), nvml_.gpm_metrics.name)) {
    // An older driver may refuse all metrics because of one that it does not know.
    if (count == 1) answers->never = IsPermanent(nvml_device.last());
    if (count == 1 || nvml_device.last() != abi::kInvalidArgument) return false;
    for (std::size_t i = 0; i < count; ++i) Get(nvml_device, metrics + i, 1, answers + i);
    return true;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const abi::GpmMetric& metric = request->metrics[i];
    answers[i].never = IsPermanent(metric.status);
    if (metric.status == abi::kSuccess && std::isfinite(metric.value) && metric.value >= 0)
      answers[i].value = metric.value;
  }
  return true;
}

std::vector<GpmAnswer> Gpm::Measure(NvmlDevice& nvml_device, const std::vector<unsigned>& metrics,
                                    base::TimePoint now) {
  std::vector<GpmAnswer> answers(metrics.size());
  if (!Allocate(nvml_device)) return answers;
  if (since_ && now - *since_ < kMinWindow) return answers;
  if (!TakeSample(nvml_device)) {
    since_.reset();
    return answers;
  }
  const bool first = !since_ || now - *since_ > kMaxWindow;
  bool good = true;
  for (std::size_t done = 0; !first && good && done < metrics.size(); done += abi::kMaxGpmMetrics) {
    const std::size_t count = std::min<std::size_t>(metrics.size() - done, abi::kMaxGpmMetrics);
    good = Get(nvml_device, metrics.data() + done, count, answers.data() + done);
  }
  if (first || !good || now - *since_ >= kGoodWindow) {
    std::swap(before_, now_);
    since_ = now;
  }
  return answers;
}

}  // namespace penstock::backend::nvidia
