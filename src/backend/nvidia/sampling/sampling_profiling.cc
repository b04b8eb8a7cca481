// Turns GPM's metrics into quantities.
#include "backend/nvidia/sampling/sampling_traffic.h"

namespace penstock::backend::nvidia {
namespace {

/// Shares of time come out slightly above 100 if the two samples are not quite as far apart as the
/// library assumes. Values far above 100 are left as they are, for the readers that count invalid
/// values (DCGM 152).
constexpr double kSlack = 5;

device::Number Value(const device::Quantity& quantity, double value) {
  if (quantity.unit == device::Unit::kBytesPerSecond) return value * kMebibyte;
  if (quantity.unit == device::Unit::kPercent && value > 100 && value <= 100 + kSlack) return 100.0;
  if (quantity.counter) return static_cast<std::uint64_t>(value);
  return value;
}

}  // namespace

std::size_t GpmBatch::Add(unsigned metric) {
  metrics_.push_back(metric);
  return metrics_.size() - 1;
}

void GpmBatch::Run(SampleBuilder& builder) {
  if (!metrics_.empty())
    answers_ = builder.gpu.gpm.Measure(builder.nvml_device, metrics_, builder.now);
}

GpmQuantities::GpmQuantities(SampleBuilder& builder, std::optional<bool> gpm, GpmBatch& batch)
    : builder_(builder), batch_(batch) {
  if (!gpm) return;
  if (!*gpm) {
    builder.Missing(builder.Of(NvmlCall::kGpm));
    return;
  }
  for (const Wanted& wanted : builder.Of(NvmlCall::kGpm))
    requested_.emplace_back(wanted, batch.Add(wanted.query.number));
}

void GpmQuantities::Give() {
  for (const auto& [wanted, place] : requested_) {
    const GpmAnswer& answer = batch_.At(place);
    if (answer.value) builder_.Give(wanted.id, Value(TheQuantities()[wanted.id], *answer.value));
    if (answer.never) builder_.Missing(wanted.id);
  }
}

}  // namespace penstock::backend::nvidia
