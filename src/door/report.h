// From the snapshots to the one report. Collects nothing.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/report.h"
#include "device/sharing.h"
#include "door/conditions.h"
#include "node/health/status.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/sample/samples.h"
#include "node/share/offer.h"

namespace penstock::door {

/// What the report needs besides the snapshots.
struct ReportContext {
  std::string node;
  std::function<std::vector<api::DoorReport>()> doors;
  std::function<std::map<std::string, std::string>()> withheld;  ///< by device id, what a door keeps back although it is offered, and why
  std::function<std::map<std::string, std::string>()> unusable_drivers;  ///< by vendor, of drivers that are there, and why
  const node::share::Wishes* wishes = nullptr;
  const std::vector<node::share::Offer>* offers = nullptr;
  const device::SharedDevices* servers = nullptr;
  const node::health::Statuses* health = nullptr;
  const node::sample::Snapshot* samples = nullptr;  ///< null: nothing is measured
  std::function<api::ConfigurationReport()> configuration;
  ConditionTimes* times = nullptr;  ///< since when conditions are so; null: not told
  base::WallTime now{};             ///< for `times`
};

api::Report MakeReport(const node::inventory::Snapshot& inventory, const node::ledger::Snapshot& ledger, const ReportContext& context);

}  // namespace penstock::door
