// Splits the interval at every begin and end of an occupancy; within a piece the holders stay the
// same.
#include "node/usage/apportion.h"

#include <algorithm>
#include <cstddef>

namespace penstock::node::usage {
namespace {

/// Adds the parts of one piece, in which the holders stay the same.
void PartPiece(base::TimePoint begin, base::TimePoint end, double weight,
               std::span<const Occupancy> occupancies, double outside, std::vector<double>& parts) {
  double computed = 0;
  std::size_t there = 0;
  const auto is_present = [&](const Occupancy& occupancy) {
    return occupancy.from <= begin && occupancy.to >= end;
  };
  for (const Occupancy& occupancy : occupancies) {
    if (!is_present(occupancy)) continue;
    ++there;
    computed += occupancy.compute;
  }
  for (std::size_t i = 0; i < occupancies.size(); ++i) {
    if (!is_present(occupancies[i])) continue;
    const double part = computed + outside > 0 ? occupancies[i].compute / (computed + outside)
                                               : 1.0 / static_cast<double>(there);
    parts[i] += weight * part;
  }
}

}  // namespace

base::Duration Overlap(base::TimePoint begin, base::TimePoint end, const Occupancy& occupancy) {
  return std::max(std::min(end, occupancy.to) - std::max(begin, occupancy.from),
                  base::Duration::zero());
}

std::vector<double> Apportion(base::TimePoint begin, base::TimePoint end,
                              std::span<const Occupancy> occupancies, double outside) {
  std::vector<double> parts(occupancies.size(), 0);
  if (end <= begin) return parts;
  std::vector<base::TimePoint> cuts = {begin, end};
  for (const Occupancy& occupancy : occupancies)
    for (const base::TimePoint cut : {occupancy.from, occupancy.to})
      if (cut > begin && cut < end) cuts.push_back(cut);
  std::ranges::sort(cuts);
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  const double whole = base::Seconds(end - begin);
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i)
    PartPiece(cuts[i], cuts[i + 1], base::Seconds(cuts[i + 1] - cuts[i]) / whole, occupancies,
              outside, parts);
  return parts;
}

}  // namespace penstock::node::usage
