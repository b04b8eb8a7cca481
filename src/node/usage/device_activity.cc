// A value whose call failed still has its old time; it is not used twice.
#include "node/usage/device_activity.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "node/sample/headline_metrics.h"

namespace penstock::node::usage {
namespace {

/// The quantity of a family for the whole device; among several, the one with the shortest labels.
std::optional<device::QuantityId> Find(std::span<const device::Quantity> table,
                                       std::string_view family) {
  std::optional<device::QuantityId> found;
  for (std::size_t i = 0; i < table.size(); ++i)
    if (table[i].family == family && !table[i].per_link &&
        (!found || table[i].labels.size() < table[*found].labels.size()))
      found = static_cast<device::QuantityId>(i);
  return found;
}

/// In the base unit.
std::optional<double> Take(const sample::DeviceSample& sample, const device::Dialect& dialect,
                           std::optional<device::QuantityId> role, base::WallTime& used) {
  const sample::Latest* latest = role ? sample.Find(*role) : nullptr;
  if (latest == nullptr || latest->at == used) return std::nullopt;
  used = latest->at;
  return device::ToDouble(latest->value.number) *
         device::BaseOf(dialect.Quantities()[*role].unit).factor;
}

}  // namespace

Roles RolesOf(const device::Dialect& dialect) {
  const auto table = dialect.Quantities();
  return {.utilization = sample::QuantitiesOf(sample::HeadlineMetric::kUtilization, table),
          .power = Find(table, "accelerator_power_watts"),
          .energy = Find(table, "accelerator_energy_joules_total"),
          .memory = Find(table, "accelerator_memory_used_bytes")};
}

DeviceActivity TakeActivity(const sample::DeviceSample& sample, const device::Dialect& dialect,
                            const Roles& roles, Used& used) {
  DeviceActivity activity;
  for (const device::QuantityId id : roles.utilization)
    if (!activity.utilization) activity.utilization = Take(sample, dialect, id, used.utilization);
  activity.watts = Take(sample, dialect, roles.power, used.power);
  activity.joules = Take(sample, dialect, roles.energy, used.energy);
  if (const auto memory = Take(sample, dialect, roles.memory, used.memory))
    activity.memory = base::Bytes{static_cast<std::uint64_t>(std::max(*memory, 0.0))};
  activity.processes = std::exchange(used.processes, sample.processes_at) != sample.processes_at;
  if (roles.power) {
    const device::Quantity& power = dialect.Quantities()[*roles.power];
    activity.most_watts = power.most * device::BaseOf(power.unit).factor;
  }
  return activity;
}

}  // namespace penstock::node::usage
