#include "node/change/division_now.h"

#include <algorithm>

#include "node/share/describe.h"

namespace penstock::node::change {

using device::Facts;
using inventory::Entry;

namespace {

/// Clients of a server that serves other devices, too: those of this device alone are among the
/// processes that the driver reports, without delay.
std::string ClientsOf(const std::string& id, const device::SharedDevice& shared,
                      const device::SharedDevices& servers) {
  const auto is_another = [&](const auto& one) {
    return one.first != id && one.second.set == shared.set;
  };
  return shared.clients > 0 && std::ranges::any_of(servers, is_another)
             ? std::to_string(shared.clients) + " clients of the sharing server of " + shared.set
             : "";
}

/// Without the process id: reasons leave the node.
std::string Outside(const std::string& id, pid_t pid, const ledger::Snapshot& ledger) {
  const auto known = ledger.outside.find(id);
  if (known == ledger.outside.end()) return "a process";
  const auto process = std::ranges::find(known->second, pid, &ledger::Process::pid);
  return process == known->second.end() ? "a process" : "a process of " + process->user;
}

}  // namespace

std::string HolderOf(const std::string& id, const inventory::Snapshot& inventory,
                     const ledger::Snapshot& ledger, const device::SharedDevices& servers) {
  const std::string leases = share::HoldersOf(ledger, id).text;
  if (!leases.empty()) return leases;
  const auto server = servers.find(id);
  const Entry* entry = inventory.Find(id);
  if (entry != nullptr && entry->reading != nullptr)
    for (const device::DeviceProcess& process : entry->reading->processes)
      if (!process.graphics_only && (server == servers.end() || ledger.IsOutside(id, process.pid)))
        return Outside(id, process.pid, ledger);
  return server == servers.end() ? "" : ClientsOf(id, server->second, servers);
}

partition::Division DivisionNow(const Facts& device, const inventory::Snapshot& inventory,
                                const ledger::Snapshot& ledger,
                                const device::SharedDevices& servers) {
  std::vector<const Facts*> all;
  for (const Entry& entry : inventory.devices)
    if (entry.health.state != device::HealthState::kGone) all.push_back(entry.facts.get());
  return partition::DivisionOf(
      device, all, [&](const std::string& id) { return HolderOf(id, inventory, ledger, servers); });
}

bool IsRead(const std::vector<Facts>& seen, const inventory::Snapshot& inventory) {
  const Entry* device = inventory.Find(seen.front().id);
  if (device == nullptr) return false;
  const auto parts = std::ranges::count_if(
      inventory.devices, [&](const Entry& one) { return one.IsPartOf(seen.front().id); });
  return parts + 1 == std::ssize(seen) && device->facts->modes == seen.front().modes &&
         std::ranges::all_of(seen, [&](const Facts& part) {
           const Entry* there = inventory.Find(part.id);
           return there != nullptr && there->reading != nullptr;
         });
}

}  // namespace penstock::node::change
