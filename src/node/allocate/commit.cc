// Commit: what dialects and servers say, joined.
#include <algorithm>
#include <map>
#include <set>

#include "node/allocate/allocate.h"

namespace penstock::node::allocate {

using base::Code;
using base::Error;
using base::Result;

namespace {

using Devices = std::vector<const device::Facts*>;

template <typename T>
void AddNew(std::vector<T>& to, std::vector<T> more) {
  for (T& one : more)
    if (std::find(to.begin(), to.end(), one) == to.end()) to.push_back(std::move(one));
}

void Add(device::Edits& edits, device::Edits more) {
  more.environment.merge(edits.environment);  // what is there already stays only where nothing newer is said
  edits.environment = std::move(more.environment);
  AddNew(edits.files, std::move(more.files));
  AddNew(edits.mounts, std::move(more.mounts));
}

/// Devices by vendor, each once however many shares of it there are, in order of index.
Result<std::map<std::string, Devices>> ByVendor(const std::vector<ledger::Slot>& slots, const inventory::Snapshot& inventory) {
  std::map<std::string, Devices> by_vendor;
  for (const ledger::Slot& slot : slots) {
    const inventory::Entry* entry = inventory.Find(slot.device);
    if (entry == nullptr) return Error(Code::kNotFound, "there is no device " + slot.device + " any more");
    AddNew(by_vendor[entry->facts->vendor], {entry->facts.get()});
  }
  for (auto& [vendor, devices] : by_vendor)
    std::sort(devices.begin(), devices.end(), [](const device::Facts* a, const device::Facts* b) { return a->index < b->index; });
  return by_vendor;
}

/// What the servers behind these slots need: each device's, which of one server are the same.
Result<device::Edits> OfServers(const std::vector<ledger::Slot>& slots, Consumer consumer, const device::SharedDevices& servers) {
  device::Edits edits;
  std::string set;
  for (const ledger::Slot& slot : slots) {
    if (slot.shape.sharing != device::Sharing::kMps) continue;
    const auto server = servers.find(slot.device);
    if (server == servers.end()) return Error(Code::kUnavailable, "the server of device " + slot.device + " is not there yet");
    const device::SharedDevice& shared = server->second;
    if (!shared.ready) return Error(Code::kUnavailable, "the server of device " + slot.device + " is not ready: " + shared.reason);
    if (!set.empty() && set != shared.set)
      return Error(Code::kFailedPrecondition,
                   "devices of " + set + " and of " + shared.set + " have different servers, and nobody can use two of them");
    set = shared.set;
    Add(edits, consumer == Consumer::kProcess ? shared.process : shared.container);
  }
  return edits;
}

}  // namespace

Result<device::Edits> Commit(const std::vector<ledger::Slot>& slots, Consumer consumer, const inventory::Snapshot& inventory,
                             const share::DialectOf& dialect_of, const device::SharedDevices& servers) {
  ASSIGN(const auto by_vendor, ByVendor(slots, inventory));
  device::Edits edits;
  for (const auto& [vendor, devices] : by_vendor) {
    const device::Dialect* dialect = dialect_of(vendor);
    const inventory::VendorEntry* driver = inventory.FindVendor(vendor);
    if (dialect == nullptr || driver == nullptr || driver->driver == nullptr)
      return Error(Code::kUnavailable, "the " + vendor + " driver is gone" + (driver != nullptr ? ": " + driver->reason : ""));
    const auto names = consumer == Consumer::kContainerByIndex ? device::DeviceNames::kIndices : device::DeviceNames::kIds;
    Add(edits, consumer == Consumer::kProcess ? dialect->ForProcess(devices, *driver->driver)
                                              : dialect->ForContainer(devices, *driver->driver, names));
  }
  ASSIGN(device::Edits more, OfServers(slots, consumer, servers));
  Add(edits, std::move(more));
  return edits;
}

DeviceAccess AccessFor(const std::vector<ledger::Slot>& slots, const inventory::Snapshot& inventory) {
  DeviceAccess access;
  for (const inventory::VendorEntry& vendor : inventory.vendors)
    if (vendor.driver) access.guarded.insert(access.guarded.end(), vendor.driver->guarded.begin(), vendor.driver->guarded.end());
  std::set<std::string_view> seen;
  for (const ledger::Slot& slot : slots) {
    const inventory::Entry* entry = inventory.Find(slot.device);
    if (entry == nullptr || !seen.insert(slot.device).second) continue;
    for (const device::DeviceFile& file : entry->facts->files) access.admitted.push_back({file.major, file.minor, file.minor});
  }
  return access;
}

}  // namespace penstock::node::allocate
