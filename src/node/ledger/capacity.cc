#include "node/ledger/capacity.h"

#include <algorithm>

namespace penstock::node::ledger {
namespace {

bool IsPartOf(const Slot& slot, const std::string& device) {
  return std::ranges::any_of(slot.ancestors, [&device](const inventory::Ancestor& ancestor) {
    return ancestor.device == device;
  });
}

}  // namespace

bool IsWhole(const Slot& slot) { return slot.id == slot.device; }

bool GoTogether(const device::Shape& a, const device::Shape& b) {
  if (a.sharing == device::Sharing::kNone || b.sharing == device::Sharing::kNone) return false;
  return a.sharing == device::Sharing::kServer ? a == b : a.sharing == b.sharing;
}

bool Excludes(const Slot& a, const Slot& b) {
  if (a.device == b.device)
    return a.id == b.id || IsWhole(a) || IsWhole(b) || !GoTogether(a.shape, b.shape);
  return IsPartOf(a, b.device) || IsPartOf(b, a.device);
}

PartsHeld::PartsHeld(const Slot& slot) : slot_(slot), held_(slot.ancestors.size()) {}

void PartsHeld::Add(const Slot& held) {
  if (held.ancestors.empty() || slot_.ancestors.empty() || held.device == slot_.device ||
      std::ranges::find(seen_, held.device) != seen_.end())
    return;
  seen_.push_back(held.device);
  for (std::size_t i = 0; i < held_.size(); ++i)
    if (IsPartOf(held, slot_.ancestors[i].device)) held_[i] += held.capacity;
}

bool PartsHeld::Full() const {
  for (std::size_t i = 0; i < held_.size(); ++i) {
    device::Capacity together = held_[i];
    together += slot_.capacity;
    if (held_[i] != device::Capacity{} && Exceeds(together, slot_.ancestors[i].capacity))
      return true;
  }
  return false;
}

}  // namespace penstock::node::ledger
