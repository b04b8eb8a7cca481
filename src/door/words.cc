// Short: they stand in the middle of sentences.
#include "door/words.h"

#include <algorithm>

#include "node/share/offer.h"

namespace penstock::door {

using node::ledger::Lease;

std::string DoorInWords(const std::string& door) { return door.empty() ? "no door" : "the " + door + " door"; }

std::string InWords(const device::Facts& facts) {
  return facts.index < 0 ? facts.id : "GPU " + std::to_string(facts.index) + " (" + facts.id + ")";
}

std::string InWords(const Lease& lease) {
  if (!lease.pod.empty()) return "pod " + lease.namespace_name + "/" + lease.pod;
  return lease.user.empty() ? lease.id : lease.id + " of " + lease.user;
}

Holders HoldersOf(const node::ledger::Snapshot& ledger, const std::string& device) {
  Holders holders;
  int more = 0;
  for (const Lease& lease : ledger.leases) {
    if (std::none_of(lease.slots.begin(), lease.slots.end(), [&](const auto& slot) { return slot.device == device; })) continue;
    holders.of_kubelet |= lease.door == node::share::kKubeletDoor;
    if (holders.text.empty()) {
      holders.text = InWords(lease);
    } else {
      ++more;
    }
  }
  if (more > 0) holders.text += " and " + std::to_string(more) + " more";
  return holders;
}

}  // namespace penstock::door
