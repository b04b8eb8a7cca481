// Takes the slots of one device after another.
#include "node/allocate/packing.h"

#include <algorithm>
#include <tuple>

#include "node/ledger/capacity.h"

namespace penstock::node::allocate {
namespace {

/// The slots of one device that have not been chosen.
struct OnDevice {
  std::string_view device;
  std::vector<std::size_t> slots;  // positions, in order
};

/// The device from which slots are taken next.
std::vector<OnDevice>::iterator Next(std::vector<OnDevice>& devices, std::size_t wanted,
                                     const PartsInUse& in_use) {
  const auto key = [&](const OnDevice& one) {
    const double held = in_use.Of(one.device);
    const auto count = static_cast<double>(one.slots.size());
    const bool enough = one.slots.size() >= wanted;
    return held > 0 ? std::tuple(0, -held) : std::tuple(enough ? 1 : 2, enough ? count : -count);
  };
  return std::ranges::min_element(devices, {}, key);
}

}  // namespace

PartsInUse::PartsInUse(const ledger::Snapshot& ledger) {
  for (const ledger::Lease& lease : ledger.leases)
    for (const ledger::Slot& slot : lease.slots) Add(slot);
}

void PartsInUse::Add(const ledger::Slot& slot) {
  if (slot.ancestors.empty() || !parts_.insert(slot.device).second) return;
  ledger::Slot part = slot;
  part.shape = {};
  fractions_[WholeOf(slot)] += ledger::FractionOf(part);
}

double PartsInUse::Of(std::string_view device) const {
  const auto found = fractions_.find(device);
  return found == fractions_.end() ? 0 : found->second;
}

const std::string& WholeOf(const ledger::Slot& slot) {
  return slot.ancestors.empty() ? slot.device : slot.ancestors.back().device;
}

std::vector<std::size_t> ChoosePacked(const std::vector<const ledger::Slot*>& slots,
                                      std::size_t size, PartsInUse& in_use) {
  std::vector<OnDevice> devices;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const std::string& whole = WholeOf(*slots[i]);
    auto on = std::ranges::find(devices, std::string_view(whole), &OnDevice::device);
    if (on == devices.end()) on = devices.insert(on, {whole, {}});
    on->slots.push_back(i);
  }
  std::vector<std::size_t> chosen;
  while (chosen.size() < size && !devices.empty()) {
    const auto from = Next(devices, size - chosen.size(), in_use);
    for (const std::size_t slot : from->slots) {
      if (chosen.size() == size) break;
      chosen.push_back(slot);
      in_use.Add(*slots[slot]);
    }
    devices.erase(from);
  }
  std::ranges::sort(chosen);
  return chosen;
}

}  // namespace penstock::node::allocate
