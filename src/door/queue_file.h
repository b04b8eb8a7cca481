// queue.json: who waits and how long runs may last, for an agent that starts later. No I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "node/allocate/outlook.h"
#include "node/allocate/queue.h"

namespace penstock::door {

using node::allocate::Term;

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
