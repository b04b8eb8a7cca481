// From the snapshots to the one report. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "api/report.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/share/offer.h"

namespace penstock::door {

/// What the report needs besides the snapshots.
struct ReportContext {
  std::string node;
  std::function<std::vector<api::DoorReport>()> doors;
  node::share::DoorOf door_of;
};

api::Report MakeReport(const node::inventory::Snapshot& inventory, const node::ledger::Snapshot& ledger, const ReportContext& context);

}  // namespace penstock::door
