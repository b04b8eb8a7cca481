// From one coming or going to the next, the same ones are there.
#include "node/usage/part.h"

#include <algorithm>
#include <cstddef>

namespace penstock::node::usage {
namespace {

/// One part of the interval, in which nobody comes or goes.
void PartPiece(base::TimePoint begin, base::TimePoint end, double weight, std::span<const Claim> claims, double outside,
               std::vector<double>& parts) {
  double computed = 0;
  std::size_t there = 0;
  const auto is_there = [&](const Claim& claim) { return claim.from <= begin && claim.to >= end; };
  for (const Claim& claim : claims) {
    if (!is_there(claim)) continue;
    ++there;
    computed += claim.compute;
  }
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (!is_there(claims[i])) continue;
    const double part = computed + outside > 0 ? claims[i].compute / (computed + outside) : 1.0 / static_cast<double>(there);
    parts[i] += weight * part;
  }
}

}  // namespace

base::Duration Overlap(base::TimePoint begin, base::TimePoint end, const Claim& claim) {
  return std::max(std::min(end, claim.to) - std::max(begin, claim.from), base::Duration::zero());
}

std::vector<double> Part(base::TimePoint begin, base::TimePoint end, std::span<const Claim> claims, double outside) {
  std::vector<double> parts(claims.size(), 0);
  if (end <= begin) return parts;
  std::vector<base::TimePoint> cuts = {begin, end};
  for (const Claim& claim : claims)
    for (const base::TimePoint cut : {claim.from, claim.to})
      if (cut > begin && cut < end) cuts.push_back(cut);
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  const double whole = std::chrono::duration<double>(end - begin).count();
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
    PartPiece(cuts[i], cuts[i + 1], std::chrono::duration<double>(cuts[i + 1] - cuts[i]).count() / whole, claims, outside, parts);
  return parts;
}

}  // namespace penstock::node::usage
