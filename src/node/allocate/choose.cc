// Greedy choice by links; the exact optimum comes with sharing.
#include "node/allocate/choose.h"

#include <algorithm>
#include <numeric>

namespace penstock::node::allocate {
namespace {

const device::Link* FindLink(const device::Facts& from, const device::Facts& to) {
  const auto found = std::find_if(from.links.begin(), from.links.end(), [&to](const device::Link& link) { return link.peer == to.id; });
  return found == from.links.end() ? nullptr : &*found;
}

/// One fabric lane outweighs any PCIe neighbourhood; neighbourhoods are ranked by Nearness. One side may not know of the link: the device
/// described first knew nothing of its peers yet.
int Score(const device::Facts& a, const device::Facts& b) {
  const device::Link* link = FindLink(a, b);
  if (link == nullptr) link = FindLink(b, a);
  if (link != nullptr) return 100 * link->fabric_lanes + 10 * static_cast<int>(link->nearness);
  return a.numa_node && a.numa_node == b.numa_node ? 5 : 0;
}

struct Grown {
  std::vector<std::size_t> members;
  int score = 0;
};

Grown Grow(const std::vector<std::vector<int>>& scores, Grown choice, std::size_t size) {
  const std::size_t count = scores.size();
  std::vector<int> gain(count, 0);
  std::vector<bool> taken(count, false);
  const auto take = [&](std::size_t member) {
    taken[member] = true;
    for (std::size_t i = 0; i < count; ++i) gain[i] += scores[member][i];
  };
  for (const std::size_t member : choice.members) {
    choice.score += gain[member];
    take(member);
  }
  while (choice.members.size() < size) {
    std::size_t best = count;
    for (std::size_t i = 0; i < count; ++i)
      if (!taken[i] && (best == count || gain[i] > gain[best])) best = i;
    choice.members.push_back(best);
    choice.score += gain[best];
    take(best);
  }
  return choice;
}

}  // namespace

Links::Links(const std::vector<const device::Facts*>& devices) : count_(devices.size()), scores_(count_ * count_), words_(count_ * count_) {
  for (std::size_t i = 0; i < count_; ++i)
    for (std::size_t j = 0; j < count_; ++j)
      if (i != j) scores_[i * count_ + j] = penstock::node::allocate::Score(*devices[i], *devices[j]);
}

std::string Links::Describe(std::size_t a, std::size_t b) const { return words_[a * count_ + b]; }

std::optional<Choice> ChooseBest(const Links& links, const std::vector<std::size_t>& candidates, const std::vector<std::size_t>& fixed,
                                 std::size_t size) {
  const std::size_t count = candidates.size();
  if (size < fixed.size() || size > count || size == 0) return std::nullopt;
  std::vector<std::vector<int>> scores(count, std::vector<int>(count, 0));
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t j = 0; j < count; ++j) scores[i][j] = links.Score(candidates[i], candidates[j]);
  Grown best;
  if (!fixed.empty()) {
    Grown start;
    for (std::size_t i = 0; i < count; ++i)
      if (std::find(fixed.begin(), fixed.end(), candidates[i]) != fixed.end()) start.members.push_back(i);
    best = Grow(scores, std::move(start), size);
  } else {
    for (std::size_t first = 0; first < count; ++first) {
      Grown choice = Grow(scores, {{first}, 0}, size);
      if (best.members.empty() || choice.score > best.score) best = std::move(choice);
    }
  }
  Choice choice;
  for (const std::size_t member : best.members) choice.members.push_back(candidates[member]);
  std::sort(choice.members.begin(), choice.members.end());
  choice.within = best.score;
  choice.exact = false;
  return choice;
}

}  // namespace penstock::node::allocate
