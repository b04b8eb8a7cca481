// Makes one pass over slots and leases, whatever their number.
#include "view/report_shares.h"

#include <algorithm>

namespace penstock::view {

using device::Sharing;

SharesReport::SharesReport(const std::vector<node::share::Offer>& offers,
                           const node::ledger::Snapshot& ledger,
                           const node::share::Assignments& assignments,
                           const device::SharedDevices& servers)
    : assignments_(assignments), servers_(servers) {
  std::set<std::string_view> held, whole, some;
  for (const auto& lease : ledger.leases) {
    for (const auto& slot : lease.slots) {
      held.insert(slot.id);
      some.insert(slot.device);
      if (slot.id == slot.device) whole.insert(slot.device);
    }
  }
  for (const auto& offer : offers) {
    for (const auto& offered : offer.slots) {
      const auto& slot = offered.slot;
      Offered& device = offered_[slot.device];
      if (device.first == nullptr) device = {.offer = &offer, .first = &offered};
      const bool taken = held.contains(slot.id) || whole.contains(slot.device) ||
                         (slot.id == slot.device && some.contains(slot.device));
      ++device.slots;
      device.free += offered.usable && !taken ? 1 : 0;
    }
  }
}

void SharesReport::Fill(api::DeviceReport& device) const {
  const auto found = offered_.find(device.id);
  if (found == offered_.end()) {
    const auto assignment = assignments_.find(device.id);
    const device::Shape shape =
        assignment == assignments_.end() ? device::Shape{} : assignment->second.shape;
    device.sharing = device::ToString(shape.sharing);
    device.shares = shape.shares;
    return;
  }
  const Offered& offered = found->second;
  device.resource = offered.offer->resource;
  device.sharing = device::ToString(offered.first->slot.shape.sharing);
  device.shares = offered.slots;
  device.free = offered.free;
  device.isolation = device::ToString(offered.first->isolation);
  // A holder of the device itself is in the list of its holders.
  if (device.withheld.empty() && offered.first->excluded) device.withheld = offered.first->reason;
  const auto server = servers_.find(device.id);
  if (offered.first->slot.shape.sharing != Sharing::kServer || server == servers_.end()) return;
  device.share_memory_bytes = server->second.memory.count;
  device.share_compute_percent = server->second.compute_percent;
  if (device.withheld.empty() && server->second.ready) device.withheld = server->second.reason;
}

std::vector<api::ServerReport> SharesReport::Servers() const {
  std::map<std::string, api::ServerReport> sets;
  for (const auto& [id, shared] : servers_) {
    if (shared.set.empty()) continue;
    const auto [at, is_new] = sets.try_emplace(shared.set);
    api::ServerReport& server = at->second;
    if (is_new)
      server = {.set = shared.set,
                .kind = std::string(device::ToString(Sharing::kServer)),
                .state = "ending"};
    const auto assignment = assignments_.find(id);
    const bool wanted = assignment != assignments_.end() && !assignment->second.allocator.empty() &&
                        assignment->second.shape.sharing == Sharing::kServer &&
                        device::IsSetOf(shared.set, id, assignment->second.resource);
    if (wanted && server.state == "ending") server.state = "ready";
    if (wanted && !shared.ready) server.state = "waiting";
    if (server.reason.empty()) server.reason = shared.reason;
    server.clients =
        std::max<std::int64_t>(server.clients, shared.clients);  // one server serves the whole set
    server.devices.push_back(id);
  }
  std::vector<api::ServerReport> list;
  for (auto& [set, server] : sets) list.push_back(std::move(server));
  return list;
}

}  // namespace penstock::view
