// Finds the set of devices with the best links between them. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "device/model.h"

namespace penstock::node::allocate {

/// How well devices are linked with each other: a score for each pair, greater is nearer. Computed
/// once for an inventory's facts.
class DeviceLinks {
 public:
  /// One fabric lane outweighs any PCIe relation. PCIe relations are ranked by device::Nearness, or
  /// by NUMA node where no relation is known. One of the two devices may not report the link,
  /// because it was described before its peers were known or because its links could not be read:
  /// then the other device's report is used. Where a link has a score of the vendor's, that counts
  /// instead.
  explicit DeviceLinks(const std::vector<const device::Facts*>& devices);

  std::size_t size() const { return count_; }
  /// Whether any of the devices reports a link to another.
  bool any() const { return any_; }
  /// Whether one of these, by their positions, reports a link to another of them.
  bool AnyAmong(const std::vector<std::size_t>& positions) const;
  int Score(std::size_t a, std::size_t b) const { return pairs_[a * count_ + b].score; }
  /// "4 fabric links, one PCIe switch", "the same NUMA node": for messages, without the vendor's
  /// terms where the model has none.
  std::string Describe(std::size_t a, std::size_t b) const;

 private:
  struct Pair {
    int score = 0;
    int lanes = 0;
    int vendors_score = 0;
    bool reported = false;
    device::Nearness nearness = device::Nearness::kUnknown;
  };
  void Join(std::size_t a, std::size_t b, const device::Link& link);
  std::size_t count_;
  bool any_ = false;
  std::vector<Pair> pairs_;
};

/// The links that a choice among these devices considers: none where all are parts that report no
/// links, as these are only packed.
DeviceLinks LinksToConsider(const std::vector<const device::Facts*>& devices);

/// A set of devices, with the scores for which it was chosen.
struct Choice {
  std::vector<std::size_t> members;  ///< positions into the links, in order
  std::int64_t within = 0;           ///< sum of the scores of all pairs in the set
  std::int64_t left =
      0;  ///< the same sum for the remaining candidates: what a later request can still get
  bool exact = true;  ///< false: too many candidates to check every set; a good set
};

/// Returns `size` of the candidates with the greatest sum of scores; among equals the set that
/// leaves the best-linked remainder; among equals the first by position. `fixed` are always
/// members. Exact for up to 16 candidates of any size, and for more candidates where there are at
/// most some 100,000 sets. Nothing where `size` is 0, less than the number of `fixed` or more than
/// there are, or where a candidate or a fixed device is named twice or does not exist.
std::optional<Choice> ChooseBest(const DeviceLinks& links,
                                 const std::vector<std::size_t>& candidates,
                                 const std::vector<std::size_t>& fixed, std::size_t size);

}  // namespace penstock::node::allocate
