// queue.json: who waits and how long runs may last, for an agent that starts later. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "node/allocate/queue.h"

namespace penstock::door {

/// Whose a run is, and how long it holds its devices. Monotonic times: a clock that is set ends no run.
struct Term {
  base::TimePoint began{};
  std::optional<base::TimePoint> ends = {};    ///< then it is asked to end; nothing: it may run for as long as it likes
  std::optional<base::TimePoint> killed = {};  ///< it has been asked to end, and is killed then
  std::optional<uid_t> uid = {};               ///< nothing where that is not known (an older file)
  bool operator==(const Term&) const = default;
};

struct QueueMemory {
  /// In order; of each what says whose place it is and how much it is for (a count of 0: an older file does not say).
  std::vector<node::allocate::Waiting> waiting;
  std::uint64_t next_ticket = 1;
  std::map<std::string, Term> runs;  ///< by lease
};

/// What is written is smaller: a few hundred places, and a run for each share of a device.
inline constexpr std::size_t kMostQueueBytes = 16u << 20;

std::string EncodeQueueMemory(const QueueMemory& memory, std::string_view boot_id);

/// Nothing of another boot. kFailedPrecondition where a newer version of the agent wrote it, kDataLoss where it is damaged.
base::Result<QueueMemory> DecodeQueueMemory(std::string_view text, std::string_view boot_id, std::string_view file);

}  // namespace penstock::door
