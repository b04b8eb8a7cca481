// What GPM measures, into quantities.
#include "vendor/nvidia/sampling_traffic.h"

namespace penstock::vendor::nvidia {
namespace {

constexpr double kMebibyte = 1048576;

/// Shares of time come out a little above 100 where the two samples are not quite as far apart as the library thinks; what is far above it
/// is left as it is, for those who count nonsense (DCGM 152).
constexpr double kSlack = 5;

/// Each of the first 18 links has two metrics in one row of numbers, the others in another one.
unsigned MetricOfLink(unsigned metric_of_link_0, unsigned link) {
  constexpr unsigned kFirstRow = 18;
  if (link < kFirstRow) return metric_of_link_0 + 2 * link;
  return abi::kGpmLink18Received + (metric_of_link_0 - abi::kGpmLink0Received) + 2 * (link - kFirstRow);
}

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
  const auto of_links = taking.Of(Call::kGpmOfEachLink);
  const std::vector<unsigned>* links = *gpm && !of_links.empty() ? taking.Links() : nullptr;
  if (!*gpm) taking.Missing(taking.Of(Call::kGpm));
  if (!*gpm || (links != nullptr && links->empty())) taking.Missing(of_links);
  if (!*gpm) return;
  for (const Wanted& wanted : taking.Of(Call::kGpm)) asked_.push_back({wanted, batch.Add(wanted.way.number), 1});
  if (links == nullptr || links->empty()) return;
  for (const Wanted& wanted : of_links) {
    Asked asked{wanted, 0, links->size()};
    for (const unsigned link : *links) asked.place = batch.Add(MetricOfLink(wanted.way.number, link));
    asked.place -= links->size() - 1;
    asked_.push_back(asked);
  }
}

void GpmQuantities::Give() {
  for (const Asked& asked : asked_) {
    const device::Quantity& quantity = TheQuantities()[asked.wanted.id];
    bool never = true;
    for (std::size_t i = 0; i < asked.count; ++i) {
      const GpmAnswer& answer = batch_.At(asked.place + i);
      never = never && answer.never;
      const int link = quantity.per_link ? static_cast<int>((*taking_.gpu.links)[i]) : -1;
      if (answer.value) taking_.Give(asked.wanted.id, Value(quantity, *answer.value), link);
    }
    if (never) taking_.Missing(asked.wanted.id);
  }
}

}  // namespace penstock::vendor::nvidia
