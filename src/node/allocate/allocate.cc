// Reserve and commit over snapshots.
#include "node/allocate/allocate.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/strings.h"
#include "node/allocate/choose.h"

namespace penstock::node::allocate {

using base::Code;
using base::Error;
using base::Result;

namespace {

/// A slot that a request could use, now or later.
struct Candidate {
  const share::OfferedSlot* offered;
  const inventory::Entry* entry;
};

std::string Name(const device::Facts& facts) { return "GPU " + std::to_string(facts.index) + " (" + facts.id + ")"; }

/// Why this slot cannot be had now; empty where it can.
std::string Obstacle(const Candidate& candidate, const ledger::Snapshot& ledger) {
  if (!candidate.offered->usable) return candidate.offered->reason;
  const ledger::Lease* holder = ledger.InTheWayOf(candidate.offered->slot);
  if (holder == nullptr) return "";
  std::string text = "held by " + (holder->pod.empty() ? holder->id : holder->namespace_name + "/" + holder->pod);
  if (!holder->user.empty()) text += " of " + holder->user;
  return text;
}

std::vector<Candidate> CandidatesOf(const Request& request, const inventory::Snapshot& inventory, const std::vector<share::Offer>& offers) {
  std::vector<Candidate> candidates;
  for (const share::Offer& offer : offers) {
    if (offer.door != request.door) continue;
    for (const share::OfferedSlot& slot : offer.slots) {
      const inventory::Entry* entry = inventory.Find(slot.slot.device);
      if (entry != nullptr && (request.model.empty() || device::ModelMatches(request.model, entry->facts->model)))
        candidates.push_back({&slot, entry});
    }
  }
  return candidates;
}

bool Names(const std::string& wanted, const device::Facts& facts) { return wanted == facts.id || base::ParseInt(wanted) == facts.index; }

Error NotOffered(const std::string& wanted, const inventory::Snapshot& inventory, const std::string& door) {
  for (const inventory::Entry& entry : inventory.devices) {
    if (!Names(wanted, *entry.facts)) continue;
    if (!entry.facts->withheld.empty())
      return {Code::kFailedPrecondition, Name(*entry.facts) + " is not offered: " + entry.facts->withheld};
    return {Code::kFailedPrecondition, Name(*entry.facts) + " does not belong to the " + door + " door (see `penstock status`)"};
  }
  return {Code::kNotFound, "there is no device " + wanted + " on this node (see `penstock status`)"};
}

Result<std::vector<ledger::Slot>> ReserveNamed(const Request& request, const inventory::Snapshot& inventory, const ledger::Snapshot& ledger,
                                               const std::vector<Candidate>& candidates) {
  std::vector<ledger::Slot> slots;
  std::string waits_for;
  for (const std::string& wanted : request.devices) {
    const auto found =
        std::find_if(candidates.begin(), candidates.end(), [&](const Candidate& one) { return Names(wanted, *one.entry->facts); });
    if (found == candidates.end()) return NotOffered(wanted, inventory, request.door);
    const ledger::Slot& slot = found->offered->slot;
    if (std::find(slots.begin(), slots.end(), slot) != slots.end())
      return Error(Code::kInvalidArgument, "device " + wanted + " is named twice");
    slots.push_back(slot);
    const std::string obstacle = Obstacle(*found, ledger);
    if (!obstacle.empty() && waits_for.empty()) waits_for = Name(*found->entry->facts) + ": " + obstacle;
  }
  if (!waits_for.empty()) return Error(Code::kResourceExhausted, waits_for);
  return slots;
}

Error TooMany(const Request& request, std::size_t have, const inventory::Snapshot& inventory) {
  if (inventory.devices.empty()) return {Code::kResourceExhausted, "no device has been found on this node yet"};
  std::string text = "asked for " + std::to_string(request.count) + " GPUs";
  if (!request.model.empty()) text += " of model " + request.model;
  return {Code::kFailedPrecondition, text + "; the " + request.door + " door of this node has " + std::to_string(have) + " in all"};
}

}  // namespace

Result<std::vector<ledger::Slot>> Reserve(const Request& request, const inventory::Snapshot& inventory, const ledger::Snapshot& ledger,
                                          const std::vector<share::Offer>& offers) {
  const auto candidates = CandidatesOf(request, inventory, offers);
  if (!request.devices.empty()) return ReserveNamed(request, inventory, ledger, candidates);
  if (request.count < 1) return Error(Code::kInvalidArgument, "asked for " + std::to_string(request.count) + " GPUs; ask for 1 or more");
  const auto count = static_cast<std::size_t>(request.count);
  if (candidates.size() < count) return TooMany(request, candidates.size(), inventory);

  std::vector<const device::Facts*> free;
  std::string last_obstacle;
  for (const Candidate& candidate : candidates) {
    const std::string obstacle = Obstacle(candidate, ledger);
    if (obstacle.empty()) {
      free.push_back(candidate.entry->facts.get());
    } else {
      last_obstacle = Name(*candidate.entry->facts) + ": " + obstacle;
    }
  }
  if (free.size() < count)
    return Error(Code::kResourceExhausted, std::to_string(count) + " wanted, " + std::to_string(free.size()) + " of " +
                                               std::to_string(candidates.size()) + " free; " + last_obstacle);
  std::vector<ledger::Slot> slots;
  std::vector<std::size_t> all(free.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  if (const auto choice = ChooseBest(Links(free), all, {}, count))
    for (const std::size_t position : choice->members) slots.push_back({free[position]->id, free[position]->id});
  return slots;
}

std::vector<std::string> Prefer(const Preference& asked, const share::Offer& offer, api::SharePolicy policy,
                                const inventory::Snapshot& inventory) {
  (void)policy;
  const std::set<std::string> offered(asked.available.begin(), asked.available.end());
  const std::set<std::string> fixed(asked.must_include.begin(), asked.must_include.end());
  if (!std::includes(offered.begin(), offered.end(), fixed.begin(), fixed.end())) return {};
  std::vector<const device::Facts*> candidates;
  std::vector<std::size_t> all, members;
  for (const share::OfferedSlot& slot : offer.slots) {
    const inventory::Entry* entry = inventory.Find(slot.slot.device);
    if (entry == nullptr || !offered.contains(slot.slot.id)) continue;
    if (fixed.contains(slot.slot.id)) members.push_back(candidates.size());
    all.push_back(candidates.size());
    candidates.push_back(entry->facts.get());
  }
  if (candidates.size() != offered.size()) return {};
  std::vector<std::string> chosen;
  if (const auto choice = ChooseBest(Links(candidates), all, members, asked.size))
    for (const std::size_t position : choice->members) chosen.push_back(candidates[position]->id);
  return chosen;
}

Result<device::Edits> Commit(const std::vector<ledger::Slot>& slots, Consumer consumer, const inventory::Snapshot& inventory,
                             const share::DialectOf& dialect_of, const device::SharedDevices& servers) {
  (void)servers;
  std::map<std::string, std::vector<const device::Facts*>> by_vendor;
  for (const ledger::Slot& slot : slots) {
    const inventory::Entry* entry = inventory.Find(slot.device);
    if (entry == nullptr) return Error(Code::kNotFound, "there is no device " + slot.device + " any more");
    by_vendor[entry->facts->vendor].push_back(entry->facts.get());
  }
  device::Edits edits;
  for (auto& [vendor, devices] : by_vendor) {
    const device::Dialect* dialect = dialect_of(vendor);
    const inventory::VendorEntry* driver = inventory.FindVendor(vendor);
    if (dialect == nullptr || driver == nullptr || driver->driver == nullptr)
      return Error(Code::kUnavailable, "the " + vendor + " driver is gone" + (driver != nullptr ? ": " + driver->reason : ""));
    std::sort(devices.begin(), devices.end(), [](const device::Facts* a, const device::Facts* b) { return a->index < b->index; });
    const auto names = consumer == Consumer::kContainerByIndex ? device::DeviceNames::kIndices : device::DeviceNames::kIds;
    device::Edits more = consumer == Consumer::kProcess ? dialect->ForProcess(devices, *driver->driver)
                                                        : dialect->ForContainer(devices, *driver->driver, names);
    edits.environment.merge(more.environment);
    for (auto& file : more.files)
      if (std::find(edits.files.begin(), edits.files.end(), file) == edits.files.end()) edits.files.push_back(std::move(file));
  }
  return edits;
}

DeviceAccess AccessFor(const std::vector<ledger::Slot>& slots, const inventory::Snapshot& inventory) {
  DeviceAccess access;
  for (const inventory::VendorEntry& vendor : inventory.vendors)
    if (vendor.driver) access.guarded.insert(access.guarded.end(), vendor.driver->guarded.begin(), vendor.driver->guarded.end());
  for (const ledger::Slot& slot : slots)
    if (const inventory::Entry* entry = inventory.Find(slot.device))
      for (const device::DeviceFile& file : entry->facts->files) access.admitted.push_back({file.major, file.minor, file.minor});
  return access;
}

}  // namespace penstock::node::allocate
