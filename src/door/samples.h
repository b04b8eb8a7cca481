// From the snapshots to what people look at. Pure.
#pragma once

#include <string>

#include "api/report.h"
#include "api/samples.h"
#include "base/core/clock.h"
#include "node/ledger/ledger.h"
#include "node/sample/samples.h"
#include "node/share/offer.h"

namespace penstock::door {

/// Joins what devices measure with what a report of the same moment says of them and their holders.
api::Samples MakeSamples(const api::Report& report, const node::ledger::Snapshot& ledger, const node::sample::Snapshot& samples,
                         const node::share::DialectOf& dialect_of, base::WallTime now);

}  // namespace penstock::door
