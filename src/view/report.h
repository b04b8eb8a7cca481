// Builds the node's report from the snapshots.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "api/report.h"
#include "device/sharing.h"
#include "node/health/status.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/sample/samples.h"
#include "node/share/offer.h"
#include "view/conditions.h"

namespace penstock::view {

/// The inputs of the report besides the snapshots.
struct ReportContext {
  std::string node;
  std::function<std::vector<api::AllocatorReport>()> allocators;
  std::function<std::map<std::string, std::string>()>
      withheld;  ///< by device id: devices that an allocator withholds although they are offered,
                 ///< and why
  std::function<std::map<std::string, std::string>()>
      unusable_drivers;  ///< by vendor: drivers that are present but unusable, and why
  const node::share::Assignments* assignments = nullptr;
  const std::vector<node::share::Offer>* offers = nullptr;
  const device::SharedDevices* servers = nullptr;
  const node::health::HealthStatuses* health = nullptr;
  const node::sample::Snapshot* samples = nullptr;  ///< null: nothing is measured
  std::function<api::ConfigurationReport()> configuration;
  std::function<api::LayoutReport()> layout;
  std::string next_kernel;  ///< empty: the running one, or not known
  std::function<api::CdiReport()> cdi;
  /// Takes the report with all of the above.
  std::function<std::vector<api::ValidationStep>(const api::Report&)> validation;
  ConditionTimes* times = nullptr;  ///< since when conditions have their status; null: left out
  base::WallTime now{};             ///< for `times`
};

api::Report MakeReport(const node::inventory::Snapshot& inventory,
                       const node::ledger::Snapshot& ledger, const ReportContext& context);

}  // namespace penstock::view
