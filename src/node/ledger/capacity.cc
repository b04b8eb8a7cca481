#include "node/ledger/capacity.h"

#include <algorithm>

namespace penstock::node::ledger {

bool IsWhole(const Slot& slot) { return slot.id == slot.device; }

bool GoTogether(const device::Shape& a, const device::Shape& b) {
  if (a.sharing == device::Sharing::kNone || b.sharing == device::Sharing::kNone) return false;
  return a.sharing == device::Sharing::kServer ? a == b : a.sharing == b.sharing;
}

bool IsPartOf(const Slot& slot, std::string_view device) {
  return std::ranges::any_of(slot.ancestors, [device](const inventory::Ancestor& ancestor) {
    return ancestor.device == device;
  });
}

bool Excludes(const Slot& a, const Slot& b) {
  if (a.id == b.id) return true;
  if (a.device == b.device) return IsWhole(a) || IsWhole(b) || !GoTogether(a.shape, b.shape);
  return IsPartOf(a, b.device) || IsPartOf(b, a.device);
}

double FractionOf(const Slot& slot) {
  double fraction = 1;
  if (!slot.ancestors.empty()) {
    const device::Capacity& whole = slot.ancestors.back().capacity;
    const auto of = [](auto part, auto all) {
      return all > 0 ? static_cast<double>(part) / static_cast<double>(all) : 0;
    };
    const double known = std::max(of(slot.capacity.memory.count, whole.memory.count),
                                  of(slot.capacity.compute_units, whole.compute_units));
    if (known > 0) fraction = std::min(known, 1.0);
  }
  return fraction / slot.shape.shares;
}

RoomFor::RoomFor(const Slot& slot) : slot_(slot), held_(slot.ancestors.size()) {}

bool RoomFor::Beside(const Slot& held) {
  if (Excludes(slot_, held)) return false;
  if (slot_.ancestors.empty() || held.ancestors.empty() || held.device == slot_.device ||
      !counted_.insert(held.device).second)
    return true;
  for (std::size_t i = 0; i < held_.size(); ++i) {
    if (!IsPartOf(held, slot_.ancestors[i].device)) continue;
    held_[i] += held.capacity;
    device::Capacity together = held_[i];
    together += slot_.capacity;
    if (Exceeds(together, slot_.ancestors[i].capacity)) return false;
  }
  return true;
}

}  // namespace penstock::node::ledger
