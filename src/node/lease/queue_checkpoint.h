// Encodes and decodes queue.json, which keeps queued requests and the terms of runs over restarts
// of the agent. Does no I/O.
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

namespace penstock::node::lease {

using allocate::Term;

struct QueueCheckpoint {
  /// In order. Each has what identifies its process and how much it asks for (a count of 0: an
  /// older file does not say).
  std::vector<allocate::Waiting> waiting;
  std::uint64_t next_ticket = 1;
  std::map<std::string, Term> runs;  ///< by lease
};

/// Real files are smaller: a few hundred places, and a run for each share of a device.
inline constexpr std::size_t kMaxQueueBytes = 16u << 20;

std::string EncodeQueueCheckpoint(const QueueCheckpoint& checkpoint, std::string_view boot_id);

/// Returns nothing for another boot. kFailedPrecondition where a newer version of the agent wrote
/// it, kDataLoss where it is corrupt.
base::Result<QueueCheckpoint> DecodeQueueCheckpoint(std::string_view text, std::string_view boot_id,
                                                    std::string_view file);

}  // namespace penstock::node::lease
