#include "node/share/allocator_rules.h"

#include <algorithm>

#include "base/core/strings.h"

namespace penstock::node::share {
bool Selects(const std::vector<std::string>& devices, const inventory::Entry& entry) {
  const device::Facts& facts = *entry.facts;
  return devices.empty() || std::ranges::any_of(devices, [&](const std::string& wanted) {
           return wanted == facts.id ||
                  (entry.number >= 0 && base::ParseInt(wanted) == entry.number) ||
                  device::ModelMatches(wanted, facts.model);
         });
}

AllocatorOf AssignAllocators(const api::NodeConfig& config, bool kubelet, bool local) {
  return
      [rules = config.assignments, kubelet, local](const inventory::Entry& entry) -> std::string {
        const auto if_enabled = [&](std::string_view allocator) -> std::string {
          return std::string((allocator == kKubeletAllocator && kubelet) ||
                                     (allocator == kLocalAllocator && local)
                                 ? allocator
                                 : "");
        };
        for (const api::AssignmentRule& rule : rules)
          if (Selects(rule.devices, entry)) return if_enabled(rule.allocator);
        return if_enabled(kubelet ? kKubeletAllocator : kLocalAllocator);
      };
}

}  // namespace penstock::node::share
