// What GPM measures, into quantities.
#include "vendor/nvidia/sampling_traffic.h"

namespace penstock::vendor::nvidia {
namespace {

constexpr double kMebibyte = 1048576;

/// Shares of time come out a little above 100 where the two samples are not quite as far apart as the library thinks; what is far above it
/// is left as it is, for those who count nonsense (DCGM 152).
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

void GpmBatch::Run(Taking& taking) {
  if (!metrics_.empty()) answers_ = taking.gpu.gpm.Measure(taking.questions, metrics_, taking.now);
}

GpmQuantities::GpmQuantities(Taking& taking, std::optional<bool> gpm, GpmBatch& batch) : taking_(taking), batch_(batch) {
  if (!gpm) return;
  if (!*gpm) {
    taking.Missing(taking.Of(Call::kGpm));
    return;
  }
  for (const Wanted& wanted : taking.Of(Call::kGpm)) asked_.emplace_back(wanted, batch.Add(wanted.way.number));
}

void GpmQuantities::Give() {
  for (const auto& [wanted, place] : asked_) {
    const GpmAnswer& answer = batch_.At(place);
    if (answer.value) taking_.Give(wanted.id, Value(TheQuantities()[wanted.id], *answer.value));
    if (answer.never) taking_.Missing(wanted.id);
  }
}

}  // namespace penstock::vendor::nvidia
