// Rules over facts.
#include "node/share/assign.h"

#include <algorithm>

#include "base/core/strings.h"

namespace penstock::node::share {
bool Selects(const std::vector<std::string>& devices, const inventory::Entry& entry) {
  const device::Facts& facts = *entry.facts;
  return devices.empty() || std::any_of(devices.begin(), devices.end(), [&](const std::string& wanted) {
           return wanted == facts.id || (entry.number >= 0 && base::ParseInt(wanted) == entry.number) ||
                  device::ModelMatches(wanted, facts.model);
         });
}

DoorOf AssignDoors(const api::NodeConfig& config, bool kubelet_open, bool local_open) {
  return [rules = config.doors, kubelet_open, local_open](const inventory::Entry& entry) -> std::string {
    const auto open = [&](std::string_view door) -> std::string {
      return std::string((door == kKubeletDoor && kubelet_open) || (door == kLocalDoor && local_open) ? door : "");
    };
    for (const api::DoorRule& rule : rules)
      if (Selects(rule.devices, entry)) return open(rule.door);
    return open(kubelet_open ? kKubeletDoor : kLocalDoor);
  };
}

}  // namespace penstock::node::share
