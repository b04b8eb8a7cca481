// See sampling_gpm.h. One pair of samples a device, whose window is kept between a tenth of a second and ten minutes.
#include "vendor/nvidia/sampling_gpm.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "vendor/nvidia/sampling_rates.h"

namespace penstock::vendor::nvidia {

std::optional<bool> Gpm::Supported(Questions& questions) {
  if (supported_) return supported_;
  abi::GpmSupport support{abi::kGpmSupport, 0};
  if (questions.Ask(nvml_.gpm_support, &support)) {
    supported_ = support.supported != 0;
  } else if (SaysNever(questions.last())) {
    supported_ = false;
  }
  return supported_;
}

bool Gpm::Allocate(Questions& questions) {
  for (abi::GpmSample* sample : {&before_, &now_})
    if (*sample == nullptr && !questions.Note(nvml_.gpm_allocate(sample), nvml_.gpm_allocate.name)) return false;
  return true;
}

void Gpm::Release() {
  for (abi::GpmSample* sample : {&before_, &now_})
    if (*sample != nullptr) nvml_.gpm_free(std::exchange(*sample, nullptr));
}

/// Metrics of the two samples; false where the call as a whole failed.
bool Gpm::Get(Questions& questions, const unsigned* metrics, std::size_t count, GpmAnswer* answers) {
  const auto request = std::make_unique<abi::GpmMetrics>();
  *request = {};
  request->version = abi::kGpmMetrics;
  request->count = static_cast<unsigned>(count);
  request->first = before_;
  request->second = now_;
  for (std::size_t i = 0; i < count; ++i) request->metrics[i].metric = metrics[i];
  if (!questions.Note(nvml_.gpm_metrics(request.get()), nvml_.gpm_metrics.name)) {
    // An older driver may refuse all because of one metric that it does not know.
    if (count == 1) answers->never = SaysNever(questions.last());
    if (count == 1 || questions.last() != abi::kInvalidArgument) return false;
    for (std::size_t i = 0; i < count; ++i) Get(questions, metrics + i, 1, answers + i);
    return true;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const abi::GpmMetric& metric = request->metrics[i];
    answers[i].never = SaysNever(metric.status);
    if (metric.status == abi::kSuccess && std::isfinite(metric.value) && metric.value >= 0) answers[i].value = metric.value;
  }
  return true;
}

std::vector<GpmAnswer> Gpm::Measure(Questions& questions, const std::vector<unsigned>& metrics, base::TimePoint now) {
  std::vector<GpmAnswer> answers(metrics.size());
  if (!Allocate(questions)) return answers;
  if (since_ && now - *since_ < kLeastWindow) return answers;
  if (!questions.Ask(nvml_.gpm_sample, now_)) {
    since_.reset();
    return answers;
  }
  const bool first = !since_ || now - *since_ > kMostWindow;
  bool good = true;
  for (std::size_t done = 0; !first && good && done < metrics.size(); done += abi::kMostGpmMetrics) {
    const std::size_t count = std::min<std::size_t>(metrics.size() - done, abi::kMostGpmMetrics);
    good = Get(questions, metrics.data() + done, count, answers.data() + done);
  }
  if (first || !good || now - *since_ >= kGoodWindow) {
    std::swap(before_, now_);
    since_ = now;
  }
  return answers;
}

}  // namespace penstock::vendor::nvidia
