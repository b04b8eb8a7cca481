// Computes what the page at / shows: from the report, the queue, and what was collected.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "api/page_state.h"
#include "device/dialect.h"
#include "node/allocate/queue.h"
#include "node/sample/hour_history.h"
#include "node/sample/samples.h"

namespace penstock::view {

/// The queued runs, in the order in which they are served.
struct PageQueue {
  std::vector<node::allocate::Waiting> runs;
  std::map<std::string, base::WallTime> expected_starts;  ///< by ticket, where known
};

api::PageState MakePageState(api::Report report, const node::sample::Snapshot& samples,
                             const device::DialectOf& dialect_of, const PageQueue& queue);

/// The last hour of the devices in the report's order of ids, up to this time.
api::PageHistory MakePageHistory(const node::sample::Snapshot& samples,
                                 const node::sample::HourHistory& history, base::TimePoint now);

}  // namespace penstock::view
