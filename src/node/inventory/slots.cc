// Comparing ids; serials are for people, since some boards share one among their devices.
#include "node/inventory/slots.h"

namespace penstock::node::inventory {

std::optional<Replaced> Note(Slots& slots, const device::Facts& facts) {
  if (!facts.pci || !facts.parent.empty()) return std::nullopt;
  const std::string address = ToString(*facts.pci);
  const Occupant now{facts.id, facts.serial};
  const auto [at, fresh] = slots.try_emplace(address, now);
  const Occupant before = at->second;
  at->second = now;
  if (fresh || before.id == now.id) return std::nullopt;
  const bool serials = !before.serial.empty() && !now.serial.empty() && before.serial != now.serial;
  return Replaced{before.id, "GPU at " + address + " was replaced: " + (serials ? "serial " + before.serial : before.id) + ", now " +
                                 (serials ? now.serial : now.id)};
}

}  // namespace penstock::node::inventory
