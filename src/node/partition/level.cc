#include "node/partition/level.h"

#include <algorithm>

namespace penstock::node::partition {

using device::Placement;

/// Keeping one part that can be held is worth more than keeping any number of outer parts, and
/// keeping one that is held more than any number of those that are not.
constexpr int kOuterWorth = 1, kPartWorth = 1'000, kHeldWorth = 1'000'000;

struct LevelSolver::Progress {
  LevelResult result;
  SliceMask taken = 0;
  std::set<std::size_t> used;

  /// Returns false if some of the slices were taken.
  bool Take(const Placement& at) {
    const SliceMask mask = MaskOf(at);
    const bool free = (mask & taken) == 0;
    taken |= mask;
    return free;
  }
};

std::optional<LevelResult> LevelSolver::Arrange(const Space& space, std::vector<LevelItem> items,
                                                const std::vector<std::size_t>& candidates,
                                                const std::set<std::size_t>& forced) {
  ProfileCounts counts;
  for (const LevelItem& item : items)
    counts[item.profile] += item.count + static_cast<int>(item.fixed.size());
  if (!space.WhyTooMany(counts).empty()) return std::nullopt;
  Progress progress;
  if (!PlaceFixed(items, candidates, progress)) return std::nullopt;
  if (!KeepForced(items, candidates, forced, progress)) return std::nullopt;

  std::vector<DesiredKind> kinds;
  std::vector<std::vector<std::size_t>> origin;  // of the parts of each kind
  for (const LevelItem& item : items) {
    DesiredKind kind{.profile = item.profile, .count = item.count};
    origin.emplace_back();
    for (const std::size_t part : candidates)
      if (!progress.used.contains(part) && Is(part, item)) {
        kind.existing.push_back({parts_[part].placement, WorthOf(part)});
        origin.back().push_back(part);
      }
    kinds.push_back(std::move(kind));
  }
  const auto arrangement = partition::Arrange(space, kinds, progress.taken, counts, limit_);
  if (!arrangement) return std::nullopt;
  LevelResult result = std::move(progress.result);
  for (std::size_t i = 0; i < items.size(); ++i) {
    for (const std::size_t index : arrangement->kept[i]) result.kept.push_back(origin[i][index]);
    for (const auto& at : arrangement->created[i])
      result.created.push_back({i, {items[i].profile, at}});
  }
  result.worth += arrangement->worth;
  return result;
}

bool LevelSolver::PlaceFixed(const std::vector<LevelItem>& items,
                             const std::vector<std::size_t>& candidates, Progress& progress) const {
  for (std::size_t i = 0; i < items.size(); ++i)
    for (const Placement& at : items[i].fixed) {
      if (!progress.Take(at)) return false;
      const auto there = std::ranges::find_if(candidates, [&](std::size_t part) {
        return Is(part, items[i]) && IsThere(parts_[part], at) && !progress.used.contains(part);
      });
      if (there != candidates.end()) {
        Keep(*there, progress);
      } else {
        progress.result.created.push_back({i, {items[i].profile, at}});
      }
    }
  return true;
}

bool LevelSolver::KeepForced(std::vector<LevelItem>& items,
                             const std::vector<std::size_t>& candidates,
                             const std::set<std::size_t>& forced, Progress& progress) const {
  for (const std::size_t part : candidates) {
    if (progress.used.contains(part) || !(input_.stays[part] || forced.contains(part))) continue;
    const auto item = std::ranges::find_if(
        items, [&](const LevelItem& one) { return one.count > 0 && Is(part, one); });
    if (item == items.end()) return false;
    const auto& at = parts_[part].placement;
    if (!item->profile->placements.empty() && !(at && IsPossible(*at) && progress.Take(*at)))
      return false;
    --item->count;
    Keep(part, progress);
  }
  return true;
}

void LevelSolver::Keep(std::size_t part, Progress& progress) const {
  progress.used.insert(part);
  progress.result.kept.push_back(part);
  progress.result.worth += WorthOf(part);
}

bool LevelSolver::Is(std::size_t part, const LevelItem& item) const {
  return parts_[part].outer == item.outer && parts_[part].profile == item.profile->name;
}

int LevelSolver::WorthOf(std::size_t part) const {
  if (parts_[part].outer) return kOuterWorth;
  return parts_[part].holder.empty() ? kPartWorth : kHeldWorth;
}

}  // namespace penstock::node::partition
