// queue.json: who waits and how long runs may last, for an agent that starts later. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "node/allocate/queue.h"

namespace penstock::door {

/// How long a run holds its devices. Monotonic times: a clock that is set ends no run.
struct Term {
  base::TimePoint began{};
  std::optional<base::TimePoint> ends;  ///< then the agent ends it; nothing: it may run for as long as it likes
  bool operator==(const Term&) const = default;
};

struct QueueMemory {
  std::vector<node::allocate::Waiting> waiting;  ///< in order; of each what says whose place it is
  std::uint64_t next_ticket = 1;
  std::map<std::string, Term> runs;  ///< by lease
};

/// What is written is smaller: a few hundred places, and a run for each share of a device.
inline constexpr std::size_t kMostQueueBytes = 16u << 20;

std::string EncodeQueueMemory(const QueueMemory& memory, std::string_view boot_id);

/// Nothing of another boot. kFailedPrecondition where a newer version of the agent wrote it, kDataLoss where it is damaged.
base::Result<QueueMemory> DecodeQueueMemory(std::string_view text, std::string_view boot_id, std::string_view file);

}  // namespace penstock::door
