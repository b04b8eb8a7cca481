// Arranges the parts of one level, the device or one outer part, where some must stay and some are
// desired at exact placements. Private to node/partition.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "node/partition/arrange.h"
#include "node/partition/solve.h"

namespace penstock::node::partition {

/// Desired parts of one profile on a level.
struct LevelItem {
  const device::PartProfile* profile = nullptr;
  bool outer = false;
  int count = 0;                         ///< anywhere
  std::vector<device::Placement> fixed;  ///< one more at each of these
};

struct LevelResult {
  std::vector<std::size_t> kept;                            ///< indices in Division::parts
  std::vector<std::pair<std::size_t, PlacedPart>> created;  ///< with the index of the item
  std::int64_t worth = 0;
};

class LevelSolver {
 public:
  explicit LevelSolver(const SolveInput& input) : input_(input), parts_(input.now.parts) {}

  /// `candidates`: existing parts of the level that can be kept; those in `forced`, and those that
  /// must stay, are. Nothing: there is no arrangement, or none was found before the limit.
  std::optional<LevelResult> Arrange(const Space& space, std::vector<LevelItem> items,
                                     const std::vector<std::size_t>& candidates,
                                     const std::set<std::size_t>& forced);

  /// All arrangements were compared, in all calls.
  bool proven() const { return limit_.left > 0; }

 private:
  struct Progress;
  bool PlaceFixed(const std::vector<LevelItem>& items, const std::vector<std::size_t>& candidates,
                  Progress& progress) const;
  bool KeepForced(std::vector<LevelItem>& items, const std::vector<std::size_t>& candidates,
                  const std::set<std::size_t>& forced, Progress& progress) const;
  void Keep(std::size_t part, Progress& progress) const;
  bool Is(std::size_t part, const LevelItem& item) const;
  int WorthOf(std::size_t part) const;

  const SolveInput& input_;
  const std::vector<ExistingPart>& parts_;
  TryLimit limit_;
};

}  // namespace penstock::node::partition
