// Chooses evenly over devices first, then by policy, then by links or packing.
#include <algorithm>
#include <unordered_set>

#include "node/allocate/allocate.h"
#include "node/allocate/ranked.h"

namespace penstock::node::allocate {
namespace {

using Ids = std::unordered_set<std::string_view>;

/// The slots of one device that the kubelet may choose from.
struct Stock {
  const device::Facts* facts = nullptr;
  const ledger::Slot* slot = nullptr;    // one of the device
  std::vector<const std::string*> free;  // ids in order of share, those that must be included first
  std::size_t picked = 0;                // how many of them are chosen
  int taken = 0;                         // slots that the kubelet does not offer for this choice
  bool whole = false;

  bool spare() const { return picked < free.size(); }
};

/// The devices behind the kubelet's ids, with the number of ids that are known.
struct Stocks {
  std::vector<Stock> devices;
  std::size_t known = 0;
};

Stocks StocksOf(const share::Offer& offer, const Ids& available, const Ids& must,
                const inventory::Snapshot& inventory) {
  Stocks stocks;
  std::string_view device;
  for (const share::OfferedSlot& slot : offer.slots) {
    if (slot.slot.device != device) {
      device = slot.slot.device;
      const inventory::Entry* entry = inventory.Find(device);
      stocks.devices.push_back({.facts = entry == nullptr ? nullptr : entry->facts.get(),
                                .slot = &slot.slot,
                                .whole = slot.slot.shape.shares == 1});
    }
    Stock& stock = stocks.devices.back();
    if (!available.contains(slot.slot.id)) {
      ++stock.taken;
      continue;
    }
    ++stocks.known;
    if (must.contains(slot.slot.id))
      stock.free.insert(stock.free.begin() + static_cast<std::ptrdiff_t>(stock.picked++),
                        &slot.slot.id);
    // The kubelet may not have learned yet that a slot is not usable.
    else if (slot.usable && stock.facts != nullptr)
      stock.free.push_back(&slot.slot.id);
  }
  std::erase_if(stocks.devices, [](const Stock& stock) { return stock.free.empty(); });
  return stocks;
}

/// Picks one more slot of each of up to `wanted` devices, among those that have a spare slot and
/// the fewest picked.
void PickOnce(std::vector<Stock>& devices, const DeviceLinks& links, api::SharePolicy policy,
              PartsInUse& in_use, std::size_t& wanted) {
  std::size_t fewest = SIZE_MAX;
  for (const Stock& stock : devices)
    if (stock.spare()) fewest = std::min(fewest, stock.picked);
  std::vector<Ranked> candidates;
  std::vector<std::size_t> fixed;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (devices[i].spare() && devices[i].picked == fewest)
      candidates.push_back(
          {i, policy == api::SharePolicy::kPacked ? -devices[i].taken : devices[i].taken,
           devices[i].slot});
    else if (devices[i].picked > 0)
      fixed.push_back(i);
  }
  const auto chosen = ChooseRanked(links, std::move(candidates), fixed, wanted, in_use);
  for (const std::size_t position : chosen) ++devices[position].picked;
  wanted -= std::min(wanted, chosen.size());
  if (chosen.empty()) wanted = 0;
}

/// How far the devices are in use that these are parts of. The kubelet knows first what it gave
/// away of this resource, the ledger knows of all others.
PartsInUse PartsInUseOf(const share::Offer& offer, const Ids& available, const Ids& must,
                        const ledger::Snapshot& ledger) {
  PartsInUse in_use(ledger);
  for (const share::OfferedSlot& slot : offer.slots)
    if (!available.contains(slot.slot.id) || must.contains(slot.slot.id)) in_use.Add(slot.slot);
  return in_use;
}

}  // namespace

std::vector<std::string> Prefer(const Preference& request, const share::Offer& offer,
                                api::SharePolicy policy, const inventory::Snapshot& inventory,
                                const ledger::Snapshot& ledger) {
  const Ids available(request.available.begin(), request.available.end()),
      must(request.must_include.begin(), request.must_include.end());
  if (request.size == 0 || request.size < must.size() ||
      !std::ranges::all_of(must,
                           [&available](std::string_view id) { return available.contains(id); }))
    return {};
  auto [devices, known] = StocksOf(offer, available, must, inventory);
  if (known != available.size()) return {};
  // Several shares in one request will be refused.
  if (offer.single && request.size > 1)
    std::erase_if(devices, [](const Stock& stock) { return !stock.whole && stock.picked == 0; });
  std::size_t left = 0, wanted = request.size - must.size();
  std::vector<const device::Facts*> facts;
  for (const Stock& stock : devices) {
    if (stock.facts == nullptr) return {};
    facts.push_back(stock.facts);
    left += stock.free.size() - stock.picked;
  }
  if (left < wanted) return {};
  const bool parts = std::ranges::any_of(
      devices, [](const Stock& stock) { return !stock.slot->ancestors.empty(); });
  const DeviceLinks links = LinksToConsider(facts);
  PartsInUse in_use = parts ? PartsInUseOf(offer, available, must, ledger) : PartsInUse();
  while (wanted > 0) PickOnce(devices, links, policy, in_use, wanted);
  Ids chosen;
  for (const Stock& stock : devices)
    for (std::size_t i = 0; i < stock.picked; ++i) chosen.insert(*stock.free[i]);
  std::vector<std::string> ids;
  if (chosen.size() != request.size) return ids;
  for (const share::OfferedSlot& slot : offer.slots)
    if (chosen.contains(slot.slot.id)) ids.push_back(slot.slot.id);
  return ids;
}

}  // namespace penstock::node::allocate
