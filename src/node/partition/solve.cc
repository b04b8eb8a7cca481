// Each choice of existing outer parts to keep is one problem of placements on the device and some
// within the outer parts. There are few such choices: a device has up to seven parts, and few of
// them have parts within them.
#include "node/partition/solve.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "node/partition/level.h"

namespace penstock::node::partition {
namespace {

using device::PartProfile;
using device::Placement;

/// With more outer parts than this, only all or none of those that need not stay are kept.
constexpr std::size_t kMaxChoices = 6;
/// How often parts are assigned to outer parts, in all ways of distributing them that are tried.
constexpr int kMaxAssignments = 5'000;

class Solver {
 public:
  explicit Solver(const SolveInput& input)
      : input_(input), parts_(input.now.parts), level_(input) {}

  std::optional<Solution> Run(bool& proven) {
    ListOuters();
    std::optional<Solution> best;
    const std::size_t choices = std::size_t{1}
                                << (optional_.size() <= kMaxChoices ? optional_.size() : 1);
    for (std::size_t choice = choices; choice-- > 0;) {
      auto solution = With(KeptBy(choice));
      if (solution && (!best || solution->worth > best->worth)) best = std::move(solution);
    }
    proven = assignments_left_ > 0 && level_.proven() && optional_.size() <= kMaxChoices;
    if (best) best->proven = proven;
    return best;
  }

 private:
  std::vector<std::size_t> Within(std::size_t outer) const {
    std::vector<std::size_t> within;
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (input_.available[i] && parts_[i].parent == parts_[outer].id) within.push_back(i);
    return within;
  }

  void ListOuters() {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (!parts_[i].outer || !input_.available[i]) continue;
      const auto within = Within(i);
      const bool stays = input_.stays[i] || std::ranges::any_of(within, [&](std::size_t j) {
                           return input_.stays[j];
                         });
      (stays ? staying_ : optional_).push_back(i);
    }
  }

  std::set<std::size_t> KeptBy(std::size_t choice) const {
    std::set<std::size_t> kept(staying_.begin(), staying_.end());
    for (std::size_t i = 0; i < optional_.size(); ++i) {
      const bool keep = optional_.size() <= kMaxChoices ? ((choice >> i) & 1) != 0 : choice != 0;
      if (keep) kept.insert(optional_[i]);
    }
    return kept;
  }

  /// An outer part with the parts that it gets.
  struct Filling {
    std::optional<std::size_t> existing;
    std::optional<Placement> at;  // desired exactly there
    std::vector<LevelItem> items;
    LevelResult level;
  };

  bool Arranges(const ResolvedNest& nest, Filling& filling) {
    const auto within = filling.existing ? Within(*filling.existing) : std::vector<std::size_t>();
    auto level = level_.Arrange(nest.space, filling.items, within, {});
    if (!level) return false;
    filling.level = *std::move(level);
    return true;
  }

  static int& CountIn(Filling& filling, const PartProfile& profile) {
    const auto found = std::ranges::find(filling.items, &profile, &LevelItem::profile);
    if (found != filling.items.end()) return found->count;
    filling.items.push_back({.profile = &profile});
    return filling.items.back().count;
  }

  /// Distributes the parts of a nest over outer parts: those in `kept`, and as few new ones as
  /// possible. Nothing: that is impossible, or one that is kept would have none.
  std::optional<std::vector<Filling>> Fill(const ResolvedNest& nest,
                                           const std::set<std::size_t>& kept) {
    std::vector<Filling> fillings;
    std::set<std::size_t> placed;
    for (const auto& fixed : nest.fixed) {
      Filling filling{.at = fixed.outer};
      for (const std::size_t outer : kept)
        if (parts_[outer].profile == nest.outer->name && parts_[outer].placement == fixed.outer) {
          filling.existing = outer;
          placed.insert(outer);
        }
      for (const ResolvedParts& parts : fixed.parts)
        filling.items.push_back(
            {.profile = parts.profile, .count = parts.count, .fixed = parts.fixed});
      if (!Arranges(nest, filling)) return std::nullopt;
      fillings.push_back(std::move(filling));
    }
    const std::size_t open = fillings.size();  // those from here on take any parts of the nest
    for (const std::size_t outer : kept)
      if (parts_[outer].profile == nest.outer->name && !placed.contains(outer))
        fillings.push_back({.existing = outer});

    std::vector<const PartProfile*> left = KeepWithin(nest, fillings, open);
    std::ranges::stable_sort(
        left, [](const PartProfile* a, const PartProfile* b) { return a->slices > b->slices; });
    const std::size_t most = MostOuters(nest, fillings.size() + left.size());
    while (fillings.size() < LeastOuters(nest, open) && fillings.size() < most)
      fillings.emplace_back();
    while (!Distribute(nest, fillings, open, left, 0, open)) {
      if (fillings.size() >= most) return std::nullopt;
      fillings.emplace_back();
    }
    // Only one at an exact placement can be desired without parts.
    for (const Filling& filling : fillings)
      if (!filling.at && filling.level.kept.empty() && filling.level.created.empty())
        return std::nullopt;
    return fillings;
  }

  /// Assigns to each outer part the parts that it has, as far as so many are desired, those that
  /// must stay first. Returns the profiles of the others.
  std::vector<const PartProfile*> KeepWithin(const ResolvedNest& nest,
                                             std::vector<Filling>& fillings, std::size_t open) {
    std::map<const PartProfile*, int> remaining;
    for (const ResolvedParts& parts : nest.parts) remaining[parts.profile] += parts.count;
    for (const bool stays : {true, false})
      for (std::size_t i = open; i < fillings.size(); ++i)
        for (const std::size_t part : Within(*fillings[i].existing)) {
          if (input_.stays[part] != stays) continue;
          const auto profile = nest.space.Find(parts_[part].profile);
          if (profile == nullptr || remaining[profile] == 0) continue;
          --remaining[profile];
          ++CountIn(fillings[i], *profile);
        }
    std::vector<const PartProfile*> left;
    for (const ResolvedParts& parts : nest.parts)
      left.insert(left.end(), static_cast<std::size_t>(std::exchange(remaining[parts.profile], 0)),
                  parts.profile);
    return left;
  }

  /// How many outer parts the parts of the nest need for their slices of compute, with those before
  /// `open`.
  static std::size_t LeastOuters(const ResolvedNest& nest, std::size_t open) {
    if (nest.outer->slices <= 0) return open;
    int slices = 0;
    for (const ResolvedParts& parts : nest.parts) slices += parts.count * parts.profile->slices;
    return open + static_cast<std::size_t>((slices + nest.outer->slices - 1) / nest.outer->slices);
  }

  static std::size_t MostOuters(const ResolvedNest& nest, std::size_t most) {
    return nest.outer->most > 0 ? std::min(most, static_cast<std::size_t>(nest.outer->most)) : most;
  }

  /// Assigns the parts from `next` on to outer parts from `open` on. `first`: the first one for
  /// this part; equal parts are assigned in order, because they are interchangeable.
  bool Distribute(const ResolvedNest& nest, std::vector<Filling>& fillings, std::size_t open,
                  const std::vector<const PartProfile*>& left, std::size_t next,
                  std::size_t first) {
    if (next == left.size())
      return std::all_of(fillings.begin() + static_cast<std::ptrdiff_t>(open), fillings.end(),
                         [&](Filling& filling) { return Arranges(nest, filling); });
    bool empty_tried = false;
    for (std::size_t i = first; i < fillings.size(); ++i) {
      Filling& filling = fillings[i];
      const bool empty = !filling.existing && CountsOf(filling).empty();
      if (empty && std::exchange(empty_tried, true)) continue;  // empty ones are interchangeable
      if (--assignments_left_ <= 0) return false;
      ++CountIn(filling, *left[next]);
      const bool same = next + 1 < left.size() && left[next + 1] == left[next];
      if (nest.space.WhyTooMany(CountsOf(filling)).empty() &&
          Distribute(nest, fillings, open, left, next + 1, same ? i : open))
        return true;
      --CountIn(filling, *left[next]);
    }
    return false;
  }

  static ProfileCounts CountsOf(const Filling& filling) {
    ProfileCounts counts;
    for (const LevelItem& item : filling.items)
      if (item.count > 0 || !item.fixed.empty())
        counts[item.profile] += item.count + static_cast<int>(item.fixed.size());
    return counts;
  }

  std::optional<Solution> With(const std::set<std::size_t>& kept) {
    std::vector<LevelItem> items;
    for (const ResolvedParts& parts : input_.desired.parts)
      items.push_back({.profile = parts.profile, .count = parts.count, .fixed = parts.fixed});
    std::vector<std::pair<std::size_t, std::vector<Filling>>> nests;  // index of the item
    std::size_t filled = 0;
    for (const ResolvedNest& nest : input_.desired.nests) {
      auto fillings = Fill(nest, kept);
      if (!fillings) return std::nullopt;
      LevelItem item{.profile = nest.outer, .outer = true};
      for (const Filling& filling : *fillings) {
        filled += filling.existing ? 1 : 0;
        if (filling.at) {
          item.fixed.push_back(*filling.at);
        } else {
          ++item.count;
        }
      }
      nests.emplace_back(items.size(), *std::move(fillings));
      items.push_back(std::move(item));
    }
    if (filled != kept.size()) return std::nullopt;  // one is kept that nothing is desired in

    std::vector<std::size_t> candidates(kept.begin(), kept.end());
    for (std::size_t i = 0; i < parts_.size(); ++i)
      if (input_.available[i] && !parts_[i].outer && parts_[i].parent.empty())
        candidates.push_back(i);
    auto level = level_.Arrange(input_.device, items, candidates, kept);
    if (!level) return std::nullopt;
    return Join(*std::move(level), nests);
  }

  static Solution Join(LevelResult level,
                       std::vector<std::pair<std::size_t, std::vector<Filling>>>& nests) {
    Solution solution{.kept = std::move(level.kept), .worth = level.worth};
    std::map<std::size_t, std::vector<PlacedPart>> outers;  // created ones, by item
    for (auto& [item, part] : level.created) {
      const bool outer = std::ranges::any_of(
          nests, [&, index = item](const auto& nest) { return nest.first == index; });
      (outer ? outers[item] : solution.created).push_back(part);
    }
    for (auto& [item, fillings] : nests) {
      std::vector<PlacedPart>& created = outers[item];
      for (Filling& filling : fillings) {
        FilledOuter outer{.existing = filling.existing};
        if (!filling.existing) {
          const auto found = std::ranges::find_if(created, [&](const PlacedPart& one) {
            return !filling.at || one.placement == filling.at;
          });
          outer.created = *found;
          created.erase(found);
        }
        for (auto& [index, part] : filling.level.created) outer.parts.push_back(part);
        solution.kept.insert(solution.kept.end(), filling.level.kept.begin(),
                             filling.level.kept.end());
        solution.worth += filling.level.worth;
        solution.outers.push_back(std::move(outer));
      }
    }
    std::ranges::sort(solution.kept);
    return solution;
  }

  const SolveInput& input_;
  const std::vector<ExistingPart>& parts_;
  LevelSolver level_;
  std::vector<std::size_t> staying_, optional_;  // existing outer parts
  int assignments_left_ = kMaxAssignments;
};

}  // namespace

std::optional<Solution> Solve(const SolveInput& input, bool& proven) {
  return Solver(input).Run(proven);
}

}  // namespace penstock::node::partition
