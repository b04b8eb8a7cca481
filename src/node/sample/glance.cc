// A table of families.
#include "node/sample/glance.h"

#include <algorithm>
#include <array>

namespace penstock::node::sample {
namespace {

struct Row {
  Glance glance;
  std::string_view name;
  /// Where the first one has no value the second one tells nearly the same: a partition has no utilization but that of its engines.
  std::array<std::string_view, 2> families;
};

constexpr std::array<Row, kGlances> kRows{{
    {Glance::kUtilization, "utilization", {"accelerator_utilization_ratio", "accelerator_graphics_engine_utilization_ratio"}},
    {Glance::kMemoryUsed, "memory_used", {"accelerator_memory_used_bytes"}},
    {Glance::kTemperature, "temperature", {"accelerator_temperature_celsius"}},
    {Glance::kPower, "power", {"accelerator_power_watts"}},
    {Glance::kPowerLimit, "power_limit", {"accelerator_power_limit_watts"}},
    {Glance::kClock, "clock", {"accelerator_clock_hertz"}},
}};

constexpr std::array kKept{Glance::kUtilization, Glance::kMemoryUsed, Glance::kTemperature, Glance::kPower};

const Row& RowOf(Glance glance) { return kRows[static_cast<std::size_t>(glance)]; }

}  // namespace

std::string_view NameOf(Glance glance) { return RowOf(glance).name; }

std::span<const Glance> WithHistory() { return kKept; }

std::vector<device::QuantityId> QuantitiesOf(Glance glance, std::span<const device::Quantity> quantities) {
  std::vector<device::QuantityId> found;
  for (const std::string_view family : RowOf(glance).families)
    for (std::size_t i = 0; i < quantities.size() && !family.empty(); ++i)
      if (quantities[i].family == family) found.push_back(static_cast<device::QuantityId>(i));
  return found;
}

std::optional<double> ValueOf(Glance glance, const DeviceSample& sample, std::span<const device::Quantity> quantities) {
  for (const device::QuantityId id : QuantitiesOf(glance, quantities))
    if (const Latest* latest = sample.Find(id)) return device::ToDouble(latest->value.number) * device::BaseOf(quantities[id].unit).factor;
  return std::nullopt;
}

}  // namespace penstock::node::sample
