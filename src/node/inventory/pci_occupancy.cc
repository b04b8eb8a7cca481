// Compares ids; serials appear only in messages, because some boards give all their devices the
// same serial.
#include "node/inventory/pci_occupancy.h"

namespace penstock::node::inventory {

std::optional<Replacement> DetectReplacement(PciOccupancy& occupancy, const device::Facts& facts) {
  if (!facts.pci || !facts.parent.empty()) return std::nullopt;
  const std::string address = ToString(*facts.pci);
  const PciOccupant now{facts.id, facts.serial};
  const auto [at, fresh] = occupancy.try_emplace(address, now);
  const PciOccupant before = at->second;
  at->second = now;
  if (fresh || before.id == now.id) return std::nullopt;
  const bool serials = !before.serial.empty() && !now.serial.empty() && before.serial != now.serial;
  return Replacement{before.id,
                     std::string(ToString(facts.kind)) + " at " + address +
                         " was replaced: " + (serials ? "serial " + before.serial : before.id) +
                         ", now " + (serials ? now.serial : now.id)};
}

}  // namespace penstock::node::inventory
