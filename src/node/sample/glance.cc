// A table of families.
#include "node/sample/glance.h"

#include <algorithm>
#include <array>
#include <utility>

namespace penstock::node::sample {
namespace {

struct Row {
  std::string_view name;
  /// Family and labels, the best first; no labels: whatever they are. Where the first has no value the second tells nearly the same: a
  /// partition has no utilization but that of its engines.
  std::array<std::pair<std::string_view, std::string_view>, 2> from;
};

/// By Glance.
constexpr std::array<Row, kGlances> kRows{{
    {"utilization", {{{"accelerator_utilization_ratio", ""}, {"accelerator_activity_ratio", R"(part="graphics")"}}}},
    {"memoryUsed", {{{"accelerator_memory_used_bytes", ""}}}},
    {"temperature", {{{"accelerator_temperature_celsius", ""}}}},
    {"power", {{{"accelerator_power_watts", ""}}}},
    {"powerLimit", {{{"accelerator_power_limit_watts", R"(limit="enforced")"}, {"accelerator_power_limit_watts", ""}}}},
    {"clock", {{{"accelerator_clock_hertz", R"(clock="sm")"}, {"accelerator_clock_hertz", ""}}}},
}};

constexpr std::array kKept{Glance::kUtilization, Glance::kMemoryUsed, Glance::kTemperature, Glance::kPower};

const Row& RowOf(Glance glance) { return kRows[static_cast<std::size_t>(glance)]; }

}  // namespace

std::string_view NameOf(Glance glance) { return RowOf(glance).name; }

std::span<const Glance> WithHistory() { return kKept; }

std::vector<device::QuantityId> QuantitiesOf(Glance glance, std::span<const device::Quantity> quantities) {
  std::vector<device::QuantityId> found;
  for (const auto& [family, labels] : RowOf(glance).from) {
    for (std::size_t i = 0; i < quantities.size(); ++i) {
      const auto id = static_cast<device::QuantityId>(i);
      const bool fits = !family.empty() && quantities[i].family == family && (labels.empty() || quantities[i].labels == labels);
      if (fits && std::find(found.begin(), found.end(), id) == found.end()) found.push_back(id);
    }
  }
  return found;
}

std::optional<double> ValueOf(Glance glance, const DeviceSample& sample, std::span<const device::Quantity> quantities) {
  for (const device::QuantityId id : QuantitiesOf(glance, quantities))
    if (const Latest* latest = sample.Find(id)) return device::ToDouble(latest->value.number) * device::BaseOf(quantities[id].unit).factor;
  return std::nullopt;
}

}  // namespace penstock::node::sample
