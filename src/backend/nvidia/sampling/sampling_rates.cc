#include "backend/nvidia/sampling/sampling_rates.h"

namespace penstock::backend::nvidia {

std::optional<double> Rate::Add(base::TimePoint now, std::uint64_t count) {
  const auto restart = [&]() -> std::optional<double> {
    before_.emplace(now, count);
    return std::nullopt;
  };
  if (!before_ || count < before_->second) return restart();
  const auto window = now - before_->first;
  if (window < kMinWindow) return std::nullopt;
  if (window > kMaxWindow) return restart();
  const double rate = static_cast<double>(count - before_->second) / base::Seconds(window);
  if (window >= kGoodWindow) before_.emplace(now, count);
  return rate;
}

}  // namespace penstock::backend::nvidia
