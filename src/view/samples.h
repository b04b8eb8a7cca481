// Builds the view of current measurements from the snapshots. Pure.
#pragma once

#include "api/report.h"
#include "api/samples.h"
#include "base/core/clock.h"
#include "device/dialect.h"
#include "node/ledger/ledger.h"
#include "node/sample/samples.h"

namespace penstock::view {

/// Joins the devices' measurements with what a report of the same moment says about the devices and
/// their holders.
api::Samples MakeSamples(const api::Report& report, const node::ledger::Snapshot& ledger,
                         const node::sample::Snapshot& samples, const device::DialectOf& dialect_of,
                         base::WallTime now);

}  // namespace penstock::view
