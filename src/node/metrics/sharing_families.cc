// Adds the shares of devices and the MPS servers behind them.
#include <map>
#include <set>
#include <string_view>

#include "node/metrics/families.h"

namespace penstock::node::metrics {
namespace {

/// A device as it is offered.
struct Offered {
  const share::Offer* offer = nullptr;
  const share::OfferedSlot* first = nullptr;
  std::uint64_t held = 0, free = 0, unusable = 0;
};

std::map<std::string_view, Offered> OfferedDevices(const std::vector<share::Offer>& offers,
                                                   const ledger::Snapshot& ledger) {
  std::set<std::string_view> held;
  for (const ledger::Lease& lease : ledger.leases)
    for (const ledger::Slot& slot : lease.slots) held.insert(slot.id);
  std::map<std::string_view, Offered> devices;
  for (const share::Offer& offer : offers) {
    for (const share::OfferedSlot& slot : offer.slots) {
      Offered& device = devices[slot.slot.device];
      if (device.first == nullptr) device = {.offer = &offer, .first = &slot};
      ++(held.contains(slot.slot.id) ? device.held : slot.usable ? device.free : device.unusable);
    }
  }
  return devices;
}

void AddShares(const std::vector<DeviceRow>& devices,
               const std::map<std::string_view, Offered>& offered, Exposition& page) {
  page.Family("accelerator_shares");
  for (const DeviceRow& device : devices) {
    const auto found = offered.find(device.entry->facts->id);
    if (found == offered.end()) continue;
    page.Add(device.labels, R"(state="held")", found->second.held);
    page.Add(device.labels, R"(state="free")", found->second.free);
    page.Add(device.labels, R"(state="unusable")", found->second.unusable);
  }
  page.Family("accelerator_sharing_info");
  for (const DeviceRow& device : devices) {
    const auto found = offered.find(device.entry->facts->id);
    if (found == offered.end()) continue;
    const auto& [offer, slot, held, free, unusable] = found->second;
    LabelText labels;
    labels.Add("resource", offer->resource).Add("door", offer->allocator);
    labels.Add("sharing", ToString(slot->slot.shape.sharing))
        .Add("isolation", ToString(slot->isolation));
    page.Add(device.labels, labels.text(), true);
  }
}

/// Limits in force, as the server reported them; none if it enforces none.
void AddLimits(const std::vector<DeviceRow>& devices, const device::SharedDevices& servers,
               Exposition& page) {
  page.Family("accelerator_share_memory_limit_bytes");
  for (const DeviceRow& device : devices) {
    const auto found = servers.find(device.entry->facts->id);
    if (found != servers.end() && found->second.memory.count > 0)
      page.Add(device.labels, found->second.memory.count);
  }
  page.Family("accelerator_share_compute_limit_ratio");
  for (const DeviceRow& device : devices) {
    const auto found = servers.find(device.entry->facts->id);
    if (found != servers.end() && found->second.compute_percent > 0)
      page.Add(device.labels, found->second.compute_percent / 100.0);
  }
  page.Family("accelerator_share_clients");
  for (const DeviceRow& device : devices) {
    const auto found = servers.find(device.entry->facts->id);
    if (found != servers.end())
      page.Add(device.labels, static_cast<std::uint64_t>(found->second.clients));
  }
}

void AddServers(const device::SharedDevices& servers, Exposition& page) {
  std::map<std::string_view, bool> up;
  for (const auto& [id, device] : servers) {
    bool& all = up.try_emplace(device.set, true).first->second;
    all = all && device.ready;
  }
  page.Family("penstock_sharing_server_up");
  for (const auto& [set, all] : up) page.Add(LabelText().Add("set", set).text(), {}, all);
}

}  // namespace

void AddSharing(const std::vector<DeviceRow>& devices, const Snapshots& node, Exposition& page) {
  if (node.offers) AddShares(devices, OfferedDevices(*node.offers, *node.ledger), page);
  if (!node.servers) return;
  AddLimits(devices, *node.servers, page);
  AddServers(*node.servers, page);
}

}  // namespace penstock::node::metrics
