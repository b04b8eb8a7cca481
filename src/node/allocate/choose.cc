// Finds the best-linked set from the scores of pairs alone.
#include "node/allocate/choose.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <unordered_map>

namespace penstock::node::allocate {
namespace {

using device::Nearness;
using Key = std::int64_t;

constexpr int kPerLane = 100, kPerStep = 10;
constexpr int kMaxLanes = 100;  // more than any device has; keeps bogus sums within 64 bits
constexpr int kMaxScore = kPerLane * kMaxLanes;
constexpr double kMaxSets = 100000;
constexpr std::size_t kAlwaysExact = 16;

Nearness NearnessByNode(const device::Facts& a, const device::Facts& b) {
  if (!a.numa_node || !b.numa_node) return Nearness::kUnknown;
  return a.numa_node == b.numa_node ? Nearness::kNode : Nearness::kSystem;
}

std::string Neighbourhood(Nearness nearness) {
  switch (nearness) {
    case Nearness::kBoard: return "the same board";
    case Nearness::kPciSwitch: return "one PCIe switch";
    case Nearness::kPciSwitches: return "several PCIe switches";
    case Nearness::kHostBridge: return "the same host bridge";
    case Nearness::kNode: return "the same NUMA node";
    case Nearness::kSystem: return "across NUMA nodes";
    case Nearness::kUnknown: break;
  }
  return "";
}

/// Choose `pick` of `count` items so that the sum of their own values and of the values of all
/// their pairs is greatest.
struct Problem {
  std::size_t count = 0, pick = 0;
  std::vector<Key> own;    // of each item
  std::vector<Key> pairs;  // count x count, symmetric, 0 on the diagonal
  const Key* Row(std::size_t item) const { return &pairs[item * count]; }
};

/// The same problem for the items that are not chosen: the sums differ only by a constant.
Problem Complement(const Problem& problem) {
  Problem rest{problem.count, problem.count - problem.pick, problem.own, problem.pairs};
  for (std::size_t i = 0; i < rest.count; ++i) {
    rest.own[i] = -rest.own[i];
    for (std::size_t j = 0; j < rest.count; ++j) rest.own[i] -= rest.Row(i)[j];
  }
  return rest;
}

/// Enumerates all sets, by position smallest first or greatest first, and skips those that cannot
/// beat the best so far; among equals the first one is kept.
class Search {
 public:
  enum class Order { kSmallestFirst, kGreatestFirst };
  Search(const Problem& problem, Order order)
      : problem_(problem),
        order_(order),
        gains_((problem.pick + 1) * problem.count),
        chosen_(problem.pick) {
    std::ranges::copy(problem.own, gains_.begin());
    BoundPairs();
  }

  std::vector<std::size_t> Run() {
    if (problem_.pick > 0) Extend(0, 0, 0);
    return best_;
  }

 private:
  /// With fewer open places than this, enumerating all sets is cheaper than computing a bound.
  static constexpr std::size_t kBoundFrom = 4;

  /// For every item and number of open places: twice the most that the item could add by pairs with
  /// the other items in these places; each pair counts half at either end.
  void BoundPairs() {
    const std::size_t count = problem_.count;
    most_.assign((problem_.pick + 1) * count, 0);
    std::vector<Key> row;
    for (std::size_t item = 0; item < count; ++item) {
      row.assign(problem_.Row(item), problem_.Row(item) + count);
      row.erase(row.begin() + static_cast<std::ptrdiff_t>(item));
      std::ranges::sort(row, std::greater<>());
      for (std::size_t places = 1; places <= problem_.pick; ++places)
        most_[places * count + item] =
            most_[(places - 1) * count + item] + (places > 1 ? row[places - 2] : 0);
    }
  }

  bool CanBeat(std::size_t depth, std::size_t from, Key sum) {
    const std::size_t open = problem_.pick - depth, count = problem_.count;
    if (best_.empty() || open < kBoundFrom) return true;
    const Key* gain = &gains_[depth * count];
    bounds_.clear();
    for (std::size_t item = from; item < count; ++item)
      bounds_.push_back(2 * gain[item] + most_[open * count + item]);
    std::nth_element(bounds_.begin(), bounds_.begin() + static_cast<std::ptrdiff_t>(open - 1),
                     bounds_.end(), std::greater<>());
    Key bound = 2 * sum;
    for (std::size_t i = 0; i < open; ++i) bound += bounds_[i];
    return bound > 2 * best_sum_;
  }

  /// Chooses one item at `from` or later as the one at `depth`. gains_[depth] has what each item
  /// would add to those chosen so far.
  void Extend(std::size_t depth, std::size_t from, Key sum) {
    if (!CanBeat(depth, from, sum)) return;
    const std::size_t count = problem_.count, last = count - (problem_.pick - depth);
    const Key* gain = &gains_[depth * count];
    for (std::size_t step = 0; step <= last - from; ++step) {
      const std::size_t item = order_ == Order::kSmallestFirst ? from + step : last - step;
      const Key with = sum + gain[item];
      if (depth + 1 == problem_.pick) {
        if (!best_.empty() && with <= best_sum_) continue;
        chosen_[depth] = item;
        best_ = chosen_;
        best_sum_ = with;
        continue;
      }
      chosen_[depth] = item;
      Key* next = &gains_[(depth + 1) * count];
      const Key* row = problem_.Row(item);
      for (std::size_t i = item + 1; i < count; ++i) next[i] = gain[i] + row[i];
      Extend(depth + 1, item + 1, with);
    }
  }

  const Problem& problem_;
  const Order order_;
  std::vector<Key> gains_;
  std::vector<Key> most_;
  std::vector<Key> bounds_;
  std::vector<std::size_t> chosen_;
  std::vector<std::size_t> best_;
  Key best_sum_ = std::numeric_limits<Key>::min();
};

std::vector<std::size_t> Others(const std::vector<std::size_t>& some, std::size_t count) {
  std::vector<bool> taken(count, false);
  for (const std::size_t item : some) taken[item] = true;
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < count; ++i)
    if (!taken[i]) others.push_back(i);
  return others;
}

/// Returns the best set. Searches for the smaller of the set and its complement: the set that comes
/// first has the complement that comes last.
std::vector<std::size_t> SolveExactly(const Problem& problem) {
  if (problem.pick * 2 <= problem.count)
    return Search(problem, Search::Order::kSmallestFirst).Run();
  return Others(Search(Complement(problem), Search::Order::kGreatestFirst).Run(), problem.count);
}

/// Grows a set by the best item at a time and then improves it by exchanges of one item.
class Approach {
 public:
  explicit Approach(const Problem& problem) : problem_(problem) {}

  std::vector<std::size_t> Run() {
    constexpr std::size_t kStarts = 32;
    std::vector<std::size_t> best;
    Key best_sum = 0;
    const std::size_t stride = std::max<std::size_t>(1, problem_.count / kStarts);
    for (std::size_t start = 0; start < problem_.count && problem_.pick > 0; start += stride) {
      Begin(start);
      while (chosen_ < problem_.pick) Take(BestOutside());
      // Each exchange improves the sum; the bound only limits the time.
      for (std::size_t exchanges = 0; exchanges < problem_.count && Exchange(); ++exchanges) {}
      if (!best.empty() && sum_ <= best_sum) continue;
      best = Members();
      best_sum = sum_;
    }
    return best;
  }

 private:
  void Begin(std::size_t start) {
    gain_ = problem_.own;
    taken_.assign(problem_.count, false);
    chosen_ = 0;
    sum_ = 0;
    Take(start);
  }

  void Take(std::size_t item) {
    sum_ += gain_[item];
    taken_[item] = true;
    ++chosen_;
    for (std::size_t i = 0; i < problem_.count; ++i) gain_[i] += problem_.Row(item)[i];
  }

  void Drop(std::size_t item) {
    sum_ -= gain_[item];
    taken_[item] = false;
    --chosen_;
    for (std::size_t i = 0; i < problem_.count; ++i) gain_[i] -= problem_.Row(item)[i];
  }

  std::size_t BestOutside() const {
    std::size_t best = problem_.count;
    for (std::size_t i = 0; i < problem_.count; ++i)
      if (!taken_[i] && (best == problem_.count || gain_[i] > gain_[best])) best = i;
    return best;
  }

  /// Makes the exchange that improves the sum most; false where none does.
  bool Exchange() {
    std::size_t best_out = 0, best_in = 0;
    Key best = 0;
    for (std::size_t out = 0; out < problem_.count; ++out) {
      if (!taken_[out]) continue;
      for (std::size_t in = 0; in < problem_.count; ++in) {
        if (taken_[in]) continue;
        const Key better = gain_[in] - gain_[out] - problem_.Row(out)[in];
        if (better <= best) continue;
        best = better;
        best_out = out;
        best_in = in;
      }
    }
    if (best == 0) return false;
    Drop(best_out);
    Take(best_in);
    return true;
  }

  std::vector<std::size_t> Members() const {
    std::vector<std::size_t> members;
    for (std::size_t i = 0; i < problem_.count; ++i)
      if (taken_[i]) members.push_back(i);
    return members;
  }

  const Problem& problem_;
  std::vector<Key> gain_;
  std::vector<bool> taken_;
  std::size_t chosen_ = 0;
  Key sum_ = 0;
};

bool FewSets(std::size_t count, std::size_t pick) {
  double sets = 1;
  for (std::size_t i = 0; i < std::min(pick, count - pick) && sets <= kMaxSets; ++i)
    sets = sets * static_cast<double>(count - i) / static_cast<double>(i + 1);
  return sets <= kMaxSets;
}

/// Sum of the scores of all pairs.
std::int64_t Within(const DeviceLinks& links, const std::vector<std::size_t>& members) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < members.size(); ++i)
    for (std::size_t j = i + 1; j < members.size(); ++j) sum += links.Score(members[i], members[j]);
  return sum;
}

/// The candidates in order, split into those that can be chosen and those that are fixed. Nothing
/// where the input is invalid.
struct Split {
  std::vector<std::size_t> free, fixed;
};
std::optional<Split> SplitCandidates(const DeviceLinks& links, std::vector<std::size_t> candidates,
                                     std::vector<std::size_t> fixed) {
  Split split;
  for (auto* list : {&candidates, &fixed}) {
    std::ranges::sort(*list);
    if (std::ranges::adjacent_find(*list) != list->end()) return std::nullopt;
  }
  if (!candidates.empty() && candidates.back() >= links.size()) return std::nullopt;
  if (!std::includes(candidates.begin(), candidates.end(), fixed.begin(), fixed.end()))
    return std::nullopt;
  std::set_difference(candidates.begin(), candidates.end(), fixed.begin(), fixed.end(),
                      std::back_inserter(split.free));
  split.fixed = std::move(fixed);
  return split;
}

/// The remainder scores by all its pairs, which are all pairs less those that touch the set: sum -
/// (degrees of the members) + within. With a weight on `within` that exceeds any sum of degrees,
/// one number says which set is better, and which of two equal sets leaves the better remainder.
Problem ToProblem(const DeviceLinks& links, const Split& split, std::size_t pick, bool& exact) {
  const std::size_t count = split.free.size();
  std::vector<Key> degree(count, 0);
  Key all = Within(links, split.fixed);
  for (std::size_t i = 0; i < count; ++i) {
    for (const std::size_t other : split.free)
      degree[i] += other == split.free[i] ? 0 : links.Score(split.free[i], other);
    for (const std::size_t other : split.fixed) degree[i] += links.Score(split.free[i], other);
    all += degree[i];
  }
  constexpr Key kMax = 1'000'000'000;  // its square, doubled, fits into 64 bits
  const Key weight = all < kMax ? all + 1 : 1;
  if (all >= kMax) {  // hundreds of devices: their remainder is not considered
    exact = false;
    std::ranges::fill(degree, 0);
  }
  Problem problem{count, pick, std::vector<Key>(count), std::vector<Key>(count * count)};
  for (std::size_t i = 0; i < count; ++i) {
    problem.own[i] = -degree[i];
    for (const std::size_t other : split.fixed)
      problem.own[i] += weight * links.Score(split.free[i], other);
    for (std::size_t j = 0; j < count; ++j)
      if (i != j) problem.pairs[i * count + j] = weight * links.Score(split.free[i], split.free[j]);
  }
  return problem;
}

}  // namespace

DeviceLinks::DeviceLinks(const std::vector<const device::Facts*>& devices)
    : count_(devices.size()), pairs_(count_ * count_) {
  std::unordered_map<std::string_view, std::vector<std::size_t>> positions;  // parts by device, too
  for (std::size_t i = 0; i < count_; ++i) {
    positions[devices[i]->id].push_back(i);
    if (!devices[i]->parent.empty()) positions[devices[i]->parent].push_back(i);
  }
  for (std::size_t i = 0; i < count_; ++i)
    for (const device::Link& link : devices[i]->links)
      if (const auto peers = positions.find(link.peer); peers != positions.end())
        for (const std::size_t peer : peers->second)
          if (peer != i) Join(i, peer, link);
  for (std::size_t i = 0; i < count_; ++i)
    for (std::size_t j = 0; j < count_; ++j) {
      if (i == j) continue;
      Pair& pair = pairs_[i * count_ + j];
      if (pair.nearness == Nearness::kUnknown)
        pair.nearness = NearnessByNode(*devices[i], *devices[j]);
      pair.score = pair.vendors_score > 0
                       ? pair.vendors_score
                       : kPerLane * pair.lanes + kPerStep * static_cast<int>(pair.nearness);
    }
}

void DeviceLinks::Join(std::size_t a, std::size_t b, const device::Link& link) {
  for (Pair* pair : {&pairs_[a * count_ + b], &pairs_[b * count_ + a]}) {
    pair->lanes = std::clamp(link.fabric_lanes, pair->lanes, kMaxLanes);
    pair->nearness = std::max(pair->nearness, link.nearness);
    pair->vendors_score = std::clamp(link.score, pair->vendors_score, kMaxScore);
    pair->reported = true;
  }
  any_ = true;
}

bool DeviceLinks::AnyAmong(const std::vector<std::size_t>& positions) const {
  return any_ && std::ranges::any_of(positions, [&](std::size_t a) {
           return std::ranges::any_of(
               positions, [&](std::size_t b) { return pairs_[a * count_ + b].reported; });
         });
}

std::string DeviceLinks::Describe(std::size_t a, std::size_t b) const {
  const Pair& pair = pairs_[a * count_ + b];
  const std::string place = Neighbourhood(pair.nearness);
  if (pair.lanes == 0) return place.empty() ? "no link known" : place;
  return std::to_string(pair.lanes) + (pair.lanes == 1 ? " fabric link" : " fabric links") +
         (place.empty() ? "" : ", " + place);
}

DeviceLinks LinksToConsider(const std::vector<const device::Facts*>& devices) {
  const bool packed = std::ranges::all_of(
      devices, [](const device::Facts* one) { return !one->parent.empty() && one->links.empty(); });
  return packed ? DeviceLinks({}) : DeviceLinks(devices);
}

std::optional<Choice> ChooseBest(const DeviceLinks& links,
                                 const std::vector<std::size_t>& candidates,
                                 const std::vector<std::size_t>& fixed, std::size_t size) {
  if (size == 0 || size < fixed.size() || size > candidates.size()) return std::nullopt;
  const auto split = SplitCandidates(links, candidates, fixed);
  if (!split) return std::nullopt;
  Choice choice;
  const std::size_t pick = size - fixed.size();
  choice.exact = split->free.size() <= kAlwaysExact || FewSets(split->free.size(), pick);
  const bool every_set = choice.exact;
  const Problem problem = ToProblem(links, *split, pick, choice.exact);
  const std::vector<std::size_t> picked =
      every_set ? SolveExactly(problem) : Approach(problem).Run();
  choice.members = split->fixed;
  for (const std::size_t item : picked) choice.members.push_back(split->free[item]);
  std::ranges::sort(choice.members);
  choice.within = Within(links, choice.members);
  std::vector<std::size_t> left;
  for (const std::size_t item : Others(picked, split->free.size()))
    left.push_back(split->free[item]);
  choice.left = Within(links, left);
  return choice;
}

}  // namespace penstock::node::allocate
