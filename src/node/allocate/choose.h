// Which of several devices go well together. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/model.h"

namespace penstock::node::allocate {

/// How well devices are linked with each other: a score for each pair, greater is nearer. Computed once for an inventory's facts.
class Links {
 public:
  /// One fabric lane outweighs any PCIe neighbourhood; neighbourhoods are ranked by device::Nearness, and where none is known, by NUMA
  /// node. One side may not know of the link, because the device described first knew nothing of its peers yet, or because its links could
  /// not be read: then the other side's word counts.
  explicit Links(const std::vector<const device::Facts*>& devices);

  std::size_t size() const { return count_; }
  int Score(std::size_t a, std::size_t b) const { return pairs_[a * count_ + b].score; }
  /// "4 fabric links, one PCIe switch", "the same NUMA node": for people, without a vendor's word where the model has none. Pairs of the
  /// same words have the same score.
  std::string Describe(std::size_t a, std::size_t b) const;

 private:
  struct Pair {
    int score = 0;
    int lanes = 0;
    device::Nearness nearness = device::Nearness::kUnknown;
  };
  std::size_t count_;
  std::vector<Pair> pairs_;
};

/// A set and why it is the best one.
struct Choice {
  std::vector<std::size_t> members;  ///< positions into the links, in order
  std::int64_t within = 0;           ///< sum of the scores of all pairs in it
  std::int64_t left = 0;             ///< the same of what is left of the candidates: what a later request can still get
  bool exact = true;                 ///< false: too many candidates to look at every set; a good one
};

/// `size` of the candidates with the greatest sum of scores within; among equals the one that leaves the best-linked rest; among equals the
/// first by position. `fixed` are members in any case. Exact for up to 16 candidates of any size, and for more where there are no more than
/// some 100,000 sets. Nothing where size is 0, less than fixed or more than there are, and where a candidate or a fixed one is named twice
/// or is not there.
std::optional<Choice> ChooseBest(const Links& links, const std::vector<std::size_t>& candidates, const std::vector<std::size_t>& fixed,
                                 std::size_t size);

}  // namespace penstock::node::allocate
