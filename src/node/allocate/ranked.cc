// Chooses once, for the rank of which not all candidates are needed.
#include "node/allocate/ranked.h"

#include <algorithm>
#include <tuple>

#include "node/allocate/linked_parts.h"

namespace penstock::node::allocate {
namespace {

std::vector<std::size_t> BestLinked(const DeviceLinks& links,
                                    const std::vector<std::size_t>& candidates,
                                    const std::vector<std::size_t>& fixed, std::size_t size) {
  std::vector<std::size_t> all = fixed;
  all.insert(all.end(), candidates.begin(), candidates.end());
  std::ranges::sort(all);
  std::vector<std::size_t> chosen;
  if (const auto choice = ChooseBest(links, all, fixed, fixed.size() + size))
    for (const std::size_t member : choice->members)
      if (std::ranges::find(fixed, member) == fixed.end()) chosen.push_back(member);
  return chosen;
}

bool IsPart(const Ranked& one) { return one.slot != nullptr && !one.slot->ancestors.empty(); }

/// Whether they are parts that report links to each other or to those that are fixed.
bool AreLinkedParts(const DeviceLinks& links, const std::vector<Ranked>& candidates,
                    std::vector<std::size_t> positions) {
  if (!std::ranges::all_of(candidates, IsPart)) return false;
  for (const Ranked& one : candidates) positions.push_back(one.position);
  return links.AnyAmong(positions);
}

/// The positions of those that ChooseLinkedParts or ChoosePacked chooses.
std::vector<std::size_t> Packed(const DeviceLinks& links, const std::vector<Ranked>& candidates,
                                const std::vector<std::size_t>& fixed, std::size_t size,
                                PartsInUse& in_use) {
  if (candidates.size() > size && AreLinkedParts(links, candidates, fixed)) {
    std::vector<LinkedPart> parts;
    for (const Ranked& one : candidates) parts.push_back({one.position, one.slot});
    if (auto best = ChooseLinkedParts(links, parts, fixed, size, in_use)) return *std::move(best);
  }
  std::vector<const ledger::Slot*> slots;
  for (const Ranked& one : candidates) slots.push_back(one.slot);
  std::vector<std::size_t> chosen;
  for (const std::size_t i : ChoosePacked(slots, size, in_use))
    chosen.push_back(candidates[i].position);
  return chosen;
}

}  // namespace

std::vector<std::size_t> ChooseRanked(const DeviceLinks& links, std::vector<Ranked> candidates,
                                      const std::vector<std::size_t>& fixed, std::size_t size,
                                      PartsInUse& in_use) {
  std::ranges::sort(candidates, [](const Ranked& a, const Ranked& b) {
    return std::tie(a.rank, a.position) < std::tie(b.rank, b.position);
  });
  std::vector<std::size_t> chosen, together = fixed;
  for (auto begin = candidates.begin(); begin != candidates.end() && chosen.size() < size;) {
    const auto end = std::find_if(begin, candidates.end(),
                                  [begin](const Ranked& one) { return one.rank != begin->rank; });
    const std::size_t wanted = size - chosen.size();
    std::vector<std::size_t> rank;
    if (std::any_of(begin, end, IsPart)) {
      rank = Packed(links, {begin, end}, together, wanted, in_use);
    } else {
      std::transform(begin, end, std::back_inserter(rank),
                     [](const Ranked& one) { return one.position; });
      if (rank.size() > wanted) rank = BestLinked(links, rank, together, wanted);
    }
    chosen.insert(chosen.end(), rank.begin(), rank.end());
    together.insert(together.end(), rank.begin(), rank.end());
    begin = end;
  }
  std::ranges::sort(chosen);
  return chosen;
}

}  // namespace penstock::node::allocate
