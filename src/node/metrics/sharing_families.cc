// What the page tells of shares and of the servers behind them. Decides nothing.
#include <map>
#include <set>
#include <string_view>

#include "node/metrics/families.h"

namespace penstock::node::metrics {
namespace {

using Type = Exposition::Type;

/// A device as the doors show it.
struct Offered {
  const share::Offer* offer = nullptr;
  const share::OfferedSlot* first = nullptr;
  std::uint64_t held = 0, free = 0, unusable = 0;
};

std::map<std::string_view, Offered> OfferedDevices(const std::vector<share::Offer>& offers, const ledger::Snapshot& ledger) {
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

void AddShares(const std::vector<Device>& devices, const std::map<std::string_view, Offered>& offered, Exposition& page) {
  page.Family("accelerator_shares", Type::kGauge,
              "Shares that an accelerator is given out in, by whether they can be had; 1 where it is whole.");
  for (const Device& device : devices) {
    const auto found = offered.find(device.entry->facts->id);
    if (found == offered.end()) continue;
    page.Add(Labels(device.labels).Add("state", "held"), found->second.held);
    page.Add(Labels(device.labels).Add("state", "free"), found->second.free);
    page.Add(Labels(device.labels).Add("state", "unusable"), found->second.unusable);
  }
  page.Family("accelerator_sharing_info", Type::kGauge, "How an accelerator is given out, as labels; the value is always 1.");
  for (const Device& device : devices) {
    const auto found = offered.find(device.entry->facts->id);
    if (found == offered.end()) continue;
    const auto& [offer, slot, held, free, unusable] = found->second;
    Labels labels = device.labels;
    labels.Add("resource", offer->resource).Add("door", offer->door);
    labels.Add("sharing", ToString(slot->slot.shape.sharing)).Add("isolation", ToString(slot->isolation));
    page.Add(labels, std::uint64_t{1});
  }
}

/// Limits that are in force, as the server said when it was asked; none where it holds none.
void AddLimits(const std::vector<Device>& devices, const device::SharedDevices& servers, Exposition& page) {
  page.Family("accelerator_share_memory_limit_bytes", Type::kGauge, "Memory that each process with a share of an accelerator can have.");
  for (const Device& device : devices) {
    const auto found = servers.find(device.entry->facts->id);
    if (found != servers.end() && found->second.memory.count > 0) page.Add(device.labels, found->second.memory.count);
  }
  page.Family("accelerator_share_compute_limit_ratio", Type::kGauge,
              "Part of an accelerator's processors that each process with a share of it can use, from 0 to 1.");
  for (const Device& device : devices) {
    const auto found = servers.find(device.entry->facts->id);
    if (found != servers.end() && found->second.compute_percent > 0) page.Add(device.labels, found->second.compute_percent / 100.0);
  }
  page.Family("accelerator_share_clients", Type::kGauge, "Processes that use an accelerator through its server now.");
  for (const Device& device : devices) {
    const auto found = servers.find(device.entry->facts->id);
    if (found != servers.end()) page.Add(device.labels, static_cast<std::uint64_t>(found->second.clients));
  }
}

void AddServers(const device::SharedDevices& servers, Exposition& page) {
  std::map<std::string_view, bool> up;
  for (const auto& [id, device] : servers) {
    bool& all = up.try_emplace(device.set, true).first->second;
    all = all && device.ready;
  }
  page.Family("penstock_sharing_server_up", Type::kGauge, "Whether a server through which accelerators are shared serves all of its set.");
  for (const auto& [set, all] : up) page.Add(Labels().Add("set", set), std::uint64_t{all});
}

}  // namespace

void AddSharing(const std::vector<Device>& devices, const ledger::Snapshot& ledger, const Figures& figures, Exposition& page) {
  if (figures.offers) AddShares(devices, OfferedDevices(*figures.offers, ledger), page);
  if (!figures.servers) return;
  AddLimits(devices, *figures.servers, page);
  AddServers(*figures.servers, page);
}

}  // namespace penstock::node::metrics
