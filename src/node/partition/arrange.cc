// Branch and bound: kind after kind, the one with the largest parts first, each with every choice
// of its placements. Parts of one kind are interchangeable, so their placements are chosen as a
// set. What follows a kind depends only on the slices that are taken, so each such state is
// entered again only if more was kept on the way to it.
#include "node/partition/arrange.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace penstock::node::partition {
namespace {

using device::Placement;

/// A placement of a kind, and what existing part of the kind is there.
struct Place {
  Placement at;
  SliceMask mask = 0;
  std::optional<std::size_t> existing;
  int worth = 0;
};

/// A kind whose parts have placements.
struct Placed {
  std::size_t kind = 0;  // index in the caller's list
  int count = 0;
  int size = 0;  // of the smallest placement
  std::vector<Place> places;
};

class Search {
 public:
  Search(const Space& space, const ProfileCounts& counts, TryLimit& limit)
      : extent_(space.extent()), room_measure_(space, counts), limit_(limit) {}

  void Add(std::size_t kind, const DesiredKind& desired) {
    Placed placed{.kind = kind, .count = desired.count, .size = kMaxSlices};
    for (const Placement& at : desired.profile->placements) {
      Place place{.at = at, .mask = MaskOf(at)};
      for (std::size_t i = 0; i < desired.existing.size(); ++i)
        if (desired.existing[i].placement == at && desired.existing[i].worth > place.worth) {
          place.existing = i;
          place.worth = desired.existing[i].worth;
        }
      placed.size = std::min(placed.size, at.size);
      placed.places.push_back(place);
    }
    // What is kept is tried first, so that the first arrangement is already good.
    std::ranges::stable_sort(placed.places, [](const Place& a, const Place& b) {
      return std::tuple(-a.worth, a.at) < std::tuple(-b.worth, b.at);
    });
    placed_.push_back(std::move(placed));
  }

  void Run(SliceMask taken) {
    std::ranges::stable_sort(placed_, [](const Placed& a, const Placed& b) {
      return std::tuple(-a.size, a.places.size()) < std::tuple(-b.size, b.places.size());
    });
    bound_.assign(placed_.size() + 1, 0);
    for (std::size_t i = placed_.size(); i-- > 0;) {
      bound_[i] = bound_[i + 1];
      const int most = std::min<int>(placed_[i].count, static_cast<int>(placed_[i].places.size()));
      for (int j = 0; j < most; ++j) bound_[i] += placed_[i].places[static_cast<size_t>(j)].worth;
    }
    Enter(0, taken, 0);
  }

  bool found() const { return found_; }
  std::int64_t worth() const { return worth_; }

  void Write(Arrangement& arrangement) const {
    for (const auto& [kind, place] : best_) {
      const Place& one = placed_[kind].places[place];
      const std::size_t index = placed_[kind].kind;
      if (one.existing) {
        arrangement.kept[index].push_back(*one.existing);
      } else {
        arrangement.created[index].push_back(one.at);
      }
    }
    for (auto& kept : arrangement.kept) std::ranges::sort(kept);
    for (auto& created : arrangement.created) std::ranges::sort(created);
  }

 private:
  void Enter(std::size_t kind, SliceMask taken, std::int64_t worth) {
    if (kind == placed_.size()) return Complete(taken, worth);
    if (limit_.left <= 0 || (found_ && worth + bound_[kind] < worth_)) return;
    const auto [seen, first] = seen_.try_emplace({kind, taken}, worth);
    if (!first) {
      if (seen->second >= worth) return;
      seen->second = worth;
    }
    if (!Fits(kind, taken)) return;
    Choose(kind, placed_[kind].count, 0, taken, worth);
  }

  /// Whether the kinds from this one on could fit, as far as counting shows.
  bool Fits(std::size_t kind, SliceMask taken) const {
    int size = 0;
    for (; kind < placed_.size(); ++kind) {
      const Placed& placed = placed_[kind];
      size += placed.size * placed.count;
      const auto free = std::ranges::count_if(
          placed.places, [&](const Place& place) { return (place.mask & taken) == 0; });
      if (free < placed.count) return false;
    }
    return size <= std::popcount(extent_ & ~taken);
  }

  void Choose(std::size_t kind, int left, std::size_t from, SliceMask taken, std::int64_t worth) {
    if (left == 0) return Enter(kind + 1, taken, worth);
    const Placed& placed = placed_[kind];
    for (std::size_t i = from; i + static_cast<std::size_t>(left) <= placed.places.size(); ++i) {
      const Place& place = placed.places[i];
      if ((place.mask & taken) != 0) continue;
      if (--limit_.left <= 0) return;
      chosen_.emplace_back(kind, i);
      Choose(kind, left - 1, i + 1, taken | place.mask, worth + place.worth);
      chosen_.pop_back();
    }
  }

  void Complete(SliceMask taken, std::int64_t worth) {
    if (found_ && worth < worth_) return;
    const std::int64_t room = room_measure_.Beside(taken);
    std::vector<std::tuple<std::size_t, Placement>> order;
    for (const auto& [kind, place] : chosen_)
      order.emplace_back(kind, placed_[kind].places[place].at);
    std::ranges::sort(order);
    if (found_ && std::tuple(-worth, -room, order) >= std::tuple(-worth_, -room_, order_)) return;
    found_ = true;
    worth_ = worth;
    room_ = room;
    order_ = std::move(order);
    best_ = chosen_;
  }

  const SliceMask extent_;
  const RoomMeasure room_measure_;
  TryLimit& limit_;
  std::vector<Placed> placed_;
  std::vector<std::int64_t> bound_;  // what the kinds from this one on can be worth at most
  std::map<std::pair<std::size_t, SliceMask>, std::int64_t> seen_;
  std::vector<std::pair<std::size_t, std::size_t>> chosen_, best_;  // kind, place
  std::vector<std::tuple<std::size_t, Placement>> order_;
  std::int64_t worth_ = 0, room_ = 0;
  bool found_ = false;
};

/// Parts that the driver places: those that exist are kept, the most worthy first.
std::int64_t KeepUnplaced(const DesiredKind& desired, std::vector<std::size_t>& kept) {
  std::vector<std::size_t> order(desired.existing.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return desired.existing[a].worth > desired.existing[b].worth;
  });
  order.resize(std::min(order.size(), static_cast<std::size_t>(desired.count)));
  std::ranges::sort(order);
  std::int64_t worth = 0;
  for (const std::size_t index : order) worth += desired.existing[index].worth;
  kept = std::move(order);
  return worth;
}

}  // namespace

std::optional<Arrangement> Arrange(const Space& space, std::span<const DesiredKind> kinds,
                                   SliceMask taken, const ProfileCounts& counts, TryLimit& limit) {
  Arrangement arrangement;
  arrangement.kept.resize(kinds.size());
  arrangement.created.resize(kinds.size());
  Search search(space, counts, limit);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i].count <= 0) continue;
    if (!kinds[i].profile->placements.empty()) {
      search.Add(i, kinds[i]);
      continue;
    }
    arrangement.worth += KeepUnplaced(kinds[i], arrangement.kept[i]);
    arrangement.created[i].resize(static_cast<std::size_t>(kinds[i].count) -
                                  arrangement.kept[i].size());
  }
  search.Run(taken);
  if (!search.found()) return std::nullopt;
  arrangement.worth += search.worth();
  search.Write(arrangement);
  return arrangement;
}

}  // namespace penstock::node::partition
