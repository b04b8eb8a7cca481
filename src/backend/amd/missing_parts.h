// Partitions that a GPU should have by its mode, and has not.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backend/amd/machine.h"
#include "device/model.h"

namespace penstock::backend::amd {

/// How many partitions a GPU has in a compute mode; nothing: unknown. `available`: the text of
/// available_compute_partition, by which the number of its chiplets (XCCs) is known, of which each
/// is a partition in the mode CPX.
std::optional<unsigned> PartitionsIn(std::string_view mode, std::string_view available);

/// Looks for partitions that Linux made no device for, such as the 64th on a machine whose BMC has
/// a card. A change of the mode in progress is no alarm: two readings in a row must see the same.
class MissingParts {
 public:
  /// `mode`: of the last description; `generation`: of the topology that `gpus` are from, of which
  /// `gpu` is one. Blocks.
  std::optional<device::Evidence> Look(const Machine& machine, const std::vector<AmdGpu>& gpus,
                                       const AmdGpu& gpu, const std::string& mode,
                                       const std::string& generation);

 private:
  struct Seen {
    std::string generation, mode;
    std::vector<std::string> cards;  // of all drivers, at the time of `why`
    std::string why;                 // empty: not looked for yet
  };
  std::map<std::string, Seen> seen_;  // by GPU
};

}  // namespace penstock::backend::amd
