// Texts are short, because they are used inside sentences.
#include "node/share/describe.h"

#include <algorithm>

#include "node/share/offer.h"

namespace penstock::node::share {

using ledger::Lease;

std::string DescribeAllocator(const std::string& allocator) {
  return std::string(api::FindAllocator(allocator).in_words);
}

std::string Describe(const device::Facts& facts) {
  const std::string number = NumberOf(facts);
  return number.empty()
             ? facts.id
             : std::string(device::ToString(facts.kind)) + " " + number + " (" + facts.id + ")";
}

std::string NameOfDevices(const inventory::Snapshot& inventory) {
  const auto kind_of = [](const inventory::Entry& entry) { return entry.facts->kind; };
  if (inventory.devices.empty()) return "device";
  const device::DeviceKind first = kind_of(inventory.devices.front());
  const bool same = std::ranges::all_of(
      inventory.devices, [first](device::DeviceKind kind) { return kind == first; }, kind_of);
  return same ? std::string(device::ToString(first)) : "device";
}

std::string Describe(const Lease& lease) {
  if (!lease.pod.empty()) return "pod " + lease.namespace_name + "/" + lease.pod;
  const api::Allocator& allocator = api::FindAllocator(lease.allocator);
  if (allocator.counts_itself)
    return "a " + std::string(allocator.holder) + " whose name is not known yet (" + lease.id + ")";
  return lease.user.empty() ? lease.id : lease.id + " of " + lease.user;
}

DeviceHolders HoldersOf(const ledger::Snapshot& ledger, const std::string& device) {
  DeviceHolders holders;
  int more = 0;
  for (const Lease& lease : ledger.leases) {
    if (std::ranges::none_of(lease.slots, [&](const auto& slot) { return slot.device == device; }))
      continue;
    holders.counted |= api::FindAllocator(lease.allocator).counts_itself;
    if (holders.text.empty()) {
      holders.text = Describe(lease);
    } else {
      ++more;
    }
  }
  if (more > 0) holders.text += " and " + std::to_string(more) + " more";
  return holders;
}

}  // namespace penstock::node::share
