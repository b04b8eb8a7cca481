#include "node/change/device_use.h"

#include <algorithm>

#include "node/change/division_now.h"

namespace penstock::node::change {

std::vector<std::string> DeviceUse::WithParts(const std::string& id) const {
  std::vector<std::string> ids{id};
  for (const inventory::Entry& entry : inventory.published().Get()->devices)
    if (entry.IsPartOf(id)) ids.push_back(entry.facts->id);
  return ids;
}

bool DeviceUse::IsReleased(const std::string& id) const {
  const auto leases = ledger.Get();
  return std::ranges::all_of(WithParts(id),
                             [&](const std::string& one) { return leases->Free(one); });
}

std::string DeviceUse::User(const std::string& id) const {
  const auto leases = ledger.Get();
  const auto snapshot = inventory.published().Get();
  const auto servers = changes.Servers();
  for (const std::string& one : WithParts(id)) {
    if (std::string holder = HolderOf(one, *snapshot, *leases, *servers); !holder.empty())
      return "held by " + holder;
    if (!leases->Free(one)) return "held";
    const inventory::Entry* entry = snapshot->Find(one);
    if (entry != nullptr && entry->reading != nullptr &&
        std::ranges::any_of(entry->reading->processes, &device::DeviceProcess::graphics_only))
      return "used by a display";
  }
  return "";
}

}  // namespace penstock::node::change
