#include "node/share/allocator.h"

#include <algorithm>
#include <utility>

#include "base/core/strings.h"

namespace penstock::node::share {

EnabledAllocators EnabledBy(const api::NodeConfig& config, bool kubelet_exists) {
  EnabledAllocators enabled;
  for (const api::Allocator& one : api::Allocators())
    if (api::IsOn(config.*one.enabled, kubelet_exists || !one.needs_kubelet))
      enabled.emplace(one.name);
  return enabled;
}

bool ServesPods(const EnabledAllocators& enabled) {
  return std::ranges::any_of(
      enabled, [](const std::string& name) { return api::FindAllocator(name).is_for_pods(); });
}

namespace {

/// "0:1", with the number of its device by which rules select that one.
std::string StableNumber(const inventory::Entry& part) {
  const std::string& number = part.facts->number;
  return std::to_string(part.number) + number.substr(std::min(number.find(':'), number.size()));
}

}  // namespace

bool Selects(const std::vector<std::string>& devices, const inventory::Entry& entry) {
  const device::Facts& facts = *entry.facts;
  return devices.empty() || std::ranges::any_of(devices, [&](const std::string& wanted) {
           return wanted == facts.id || entry.IsPartOf(wanted) ||
                  (entry.number >= 0 && base::ParseInt(wanted) == entry.number) ||
                  (!facts.number.empty() && wanted == StableNumber(entry)) ||
                  device::ModelMatches(wanted, facts.model);
         });
}

std::vector<std::string> OnDemandDevices(const api::NodeConfig& config,
                                         const EnabledAllocators& enabled) {
  const api::PartsStrategy strategy =
      config.profiled_parts == api::PartsStrategy::kDefault ? config.parts : config.profiled_parts;
  const bool effective =
      enabled.contains(api::CuttingAllocator().name) &&
      (strategy == api::PartsStrategy::kMixed || strategy == api::PartsStrategy::kDefault);
  return effective ? config.parts_on_demand : std::vector<std::string>{};
}

bool IsForPartsOnDemand(const std::vector<std::string>& on_demand, const inventory::Entry& entry) {
  return !on_demand.empty() && Selects(on_demand, entry);
}

AllocatorOf AssignAllocators(const api::NodeConfig& config, EnabledAllocators enabled) {
  const auto rows = api::Allocators();
  const auto first = std::ranges::find_if(
      rows, [&enabled](const api::Allocator& one) { return enabled.contains(one.name); });
  auto on_demand = OnDemandDevices(config, enabled);
  return
      [rules = config.assignments, on_demand = std::move(on_demand), enabled = std::move(enabled),
       otherwise = std::string(first == rows.end() ? "" : first->name)](
          const inventory::Entry& entry) -> std::string {
        if (IsForPartsOnDemand(on_demand, entry)) return std::string(api::CuttingAllocator().name);
        for (const api::AssignmentRule& rule : rules)
          if (Selects(rule.devices, entry))
            return enabled.contains(rule.allocator) ? rule.allocator : "";
        return otherwise;
      };
}

}  // namespace penstock::node::share
