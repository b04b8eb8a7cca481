// Merges the edits of dialects and of servers.
#include <algorithm>
#include <map>
#include <set>

#include "node/allocate/allocate.h"

namespace penstock::node::allocate {

namespace {

template <typename T>
void AddNew(std::vector<T>& to, std::vector<T> more) {
  for (T& one : more)
    if (std::ranges::find(to, one) == to.end()) to.push_back(std::move(one));
}

void Add(device::Edits& edits, device::Edits more) {
  more.environment.merge(
      edits.environment);  // merge() keeps existing values: newer ones take precedence
  edits.environment = std::move(more.environment);
  AddNew(edits.files, std::move(more.files));
  AddNew(edits.mounts, std::move(more.mounts));
}

/// Returns the edits of the servers behind these slots: one per device; those of one server are
/// equal.
Result<device::Edits> OfServers(const std::vector<ledger::Slot>& slots, ConsumerKind consumer,
                                const device::SharedDevices& servers) {
  device::Edits edits;
  std::string set;
  for (const ledger::Slot& slot : slots) {
    if (slot.shape.sharing != device::Sharing::kServer) continue;
    const auto server = servers.find(slot.device);
    if (server == servers.end())
      return Error(Code::kUnavailable,
                   "the sharing server of device " + slot.device + " is not running yet");
    const device::SharedDevice& shared = server->second;
    if (!shared.ready)
      return Error(Code::kUnavailable, "the sharing server of device " + slot.device +
                                           " is not ready: " + shared.reason);
    if (!set.empty() && set != shared.set)
      return Error(Code::kFailedPrecondition,
                   "devices of " + set + " and of " + shared.set +
                       " have different sharing servers, and a process cannot use two of them");
    set = shared.set;
    Add(edits, consumer == ConsumerKind::kProcess ? shared.process : shared.container);
  }
  return edits;
}

device::DeviceNumbers NumbersOf(const device::DeviceFile& file) {
  return {file.major, file.minor, file.minor};
}

bool Holds(const std::vector<device::DeviceNumbers>& ranges, const device::DeviceFile& file) {
  return std::ranges::any_of(ranges, [&file](const device::DeviceNumbers& range) {
    return range.major == file.major && range.first_minor <= file.minor &&
           file.minor <= range.last_minor;
  });
}

}  // namespace

Result<std::vector<VendorDevices>> DevicesOf(const std::vector<ledger::Slot>& slots,
                                             const inventory::Snapshot& inventory,
                                             const device::DialectOf& dialect_of) {
  std::map<std::string, VendorDevices> by_vendor;
  for (const ledger::Slot& slot : slots) {
    const inventory::Entry* entry = inventory.Find(slot.device);
    if (entry == nullptr)
      return Error(Code::kNotFound, "device " + slot.device + " no longer exists");
    AddNew(by_vendor[entry->facts->vendor].devices, {entry->facts.get()});
  }
  std::vector<VendorDevices> all;
  for (auto& [vendor, one] : by_vendor) {
    one.dialect = dialect_of(vendor);
    if (one.dialect == nullptr)
      return Error(Code::kUnavailable, "containers with " + vendor + " devices are not supported");
    std::ranges::sort(one.devices, {}, &device::Facts::index);
    all.push_back(std::move(one));
  }
  return all;
}

Result<device::Edits> Commit(const std::vector<ledger::Slot>& slots, ConsumerKind consumer,
                             const inventory::Snapshot& inventory,
                             const device::DialectOf& dialect_of,
                             const device::SharedDevices& servers) {
  ASSIGN(const auto by_vendor, DevicesOf(slots, inventory, dialect_of));
  const auto names = consumer == ConsumerKind::kContainerByIndex ? device::DeviceNames::kIndices
                                                                 : device::DeviceNames::kIds;
  device::Edits edits;
  for (const VendorDevices& one : by_vendor) {
    const std::string vendor(one.dialect->vendor());
    const inventory::VendorEntry* driver = inventory.FindVendor(vendor);
    if (driver == nullptr || driver->driver == nullptr)
      return Error(Code::kUnavailable, "the " + vendor + " driver is not available" +
                                           (driver != nullptr ? ": " + driver->reason : ""));
    Add(edits, consumer == ConsumerKind::kProcess
                   ? one.dialect->ForProcess(one.devices, *driver->driver)
                   : one.dialect->ForContainer(one.devices, *driver->driver, names));
    if (consumer == ConsumerKind::kProcess && by_vendor.size() > 1)
      edits.environment.merge(one.dialect->AmongOthers(one.devices));
  }
  ASSIGN(device::Edits more, OfServers(slots, consumer, servers));
  Add(edits, std::move(more));
  return edits;
}

DeviceAccess AccessFor(const std::vector<ledger::Slot>& slots,
                       const inventory::Snapshot& inventory) {
  DeviceAccess access;
  for (const inventory::VendorEntry& vendor : inventory.vendors)
    if (vendor.driver)
      access.guarded.insert(access.guarded.end(), vendor.driver->guarded.begin(),
                            vendor.driver->guarded.end());
  for (const inventory::Entry& entry : inventory.devices)
    for (const device::DeviceFile& file : entry.facts->files)
      if (!Holds(access.guarded, file)) access.guarded.push_back(NumbersOf(file));
  std::set<std::string_view> seen;
  for (const ledger::Slot& slot : slots) {
    const inventory::Entry* entry = inventory.Find(slot.device);
    if (entry == nullptr || !seen.insert(slot.device).second) continue;
    for (const device::DeviceFile& file : entry->facts->files)
      access.admitted.push_back(NumbersOf(file));
  }
  return access;
}

}  // namespace penstock::node::allocate
