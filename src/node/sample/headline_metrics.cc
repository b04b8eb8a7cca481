#include "node/sample/headline_metrics.h"

#include <algorithm>
#include <array>
#include <utility>

namespace penstock::node::sample {
namespace {

struct Row {
  std::string_view name;
  /// Family and labels, the best first; empty labels match any. The second one is a substitute for
  /// devices without the first: a partition has no utilization, only that of its engines.
  std::array<std::pair<std::string_view, std::string_view>, 2> from;
};

/// By HeadlineMetric.
constexpr std::array<Row, kHeadlineMetrics> kRows{{
    {"utilization",
     {{{"accelerator_utilization_ratio", ""},
       {"accelerator_activity_ratio", R"(part="graphics")"}}}},
    {"memoryUsed", {{{"accelerator_memory_used_bytes", ""}}}},
    {"temperature", {{{"accelerator_temperature_celsius", ""}}}},
    {"power", {{{"accelerator_power_watts", ""}}}},
    {"powerLimit",
     {{{"accelerator_power_limit_watts", R"(limit="enforced")"},
       {"accelerator_power_limit_watts", ""}}}},
    {"clock", {{{"accelerator_clock_hertz", R"(clock="sm")"}, {"accelerator_clock_hertz", ""}}}},
}};

constexpr std::array kKept{HeadlineMetric::kUtilization, HeadlineMetric::kMemoryUsed,
                           HeadlineMetric::kTemperature, HeadlineMetric::kPower};

const Row& RowOf(HeadlineMetric metric) { return kRows[static_cast<std::size_t>(metric)]; }

}  // namespace

std::string_view NameOf(HeadlineMetric metric) { return RowOf(metric).name; }

std::span<const HeadlineMetric> WithHistory() { return kKept; }

std::vector<device::QuantityId> QuantitiesOf(HeadlineMetric metric,
                                             std::span<const device::Quantity> quantities) {
  std::vector<device::QuantityId> found;
  for (const auto& [family, labels] : RowOf(metric).from) {
    for (std::size_t i = 0; i < quantities.size(); ++i) {
      const auto id = static_cast<device::QuantityId>(i);
      const bool fits = !family.empty() && quantities[i].family == family &&
                        (labels.empty() || quantities[i].labels == labels);
      if (fits && std::ranges::find(found, id) == found.end()) found.push_back(id);
    }
  }
  return found;
}

std::optional<double> ValueOf(HeadlineMetric metric, const DeviceSample& sample,
                              std::span<const device::Quantity> quantities) {
  for (const device::QuantityId id : QuantitiesOf(metric, quantities))
    if (const Latest* latest = sample.Find(id))
      return device::ToDouble(latest->value.number) * device::BaseOf(quantities[id].unit).factor;
  return std::nullopt;
}

}  // namespace penstock::node::sample
