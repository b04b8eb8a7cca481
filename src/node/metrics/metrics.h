// The metrics page: devices, health, shares, holders and our own cost, from snapshots only. Calls no vendor, reads no file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/dialect.h"
#include "node/health/health.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/sample/samples.h"
#include "node/share/offer.h"

namespace penstock::node::metrics {

/// What one of our own processes costs.
struct ProcessCost {
  std::string process;  ///< "agent", "worker-nvidia"
  std::uint64_t resident_bytes = 0;
  double cpu_seconds = 0;
};

/// How the configuration fared since the agent started.
struct ConfigReloads {
  std::uint64_t applied = 0, refused = 0;
  bool last_successful = true;
  base::WallTime last_applied{};
};

/// What was asked of an API server since the agent started.
struct ApiRequests {
  std::uint64_t reads = 0, writes = 0, streams = 0, retries = 0, failures = 0;
};

/// What the page tells besides the snapshots.
struct Figures {
  std::string version;
  std::size_t queue_length = 0;
  std::vector<ProcessCost> processes;
  std::vector<health::EvidenceCount> evidence;
  health::Statuses health;
  std::vector<health::TransitionCount> transitions;
  std::vector<health::ResetCount> resets;
  std::shared_ptr<const std::vector<share::Offer>> offers;  ///< null: not known yet
  std::shared_ptr<const device::SharedDevices> servers;     ///< null: there are none
  ConfigReloads reloads;
  std::shared_ptr<const sample::Snapshot> samples;                     ///< null: nothing is collected
  std::function<const device::Dialect*(std::string_view)> dialect_of;  ///< by vendor; null for one that it does not know
  std::optional<ApiRequests> api_requests;                             ///< nothing: no API server is asked
};

/// The page in the text exposition format (exposition.h). Any thread. What is not known is left out, never 0. The families are documented
/// in docs/reference/metrics.md; names and labels are stable.
std::string Render(const inventory::Snapshot& inventory, const ledger::Snapshot& ledger, const Figures& figures);

}  // namespace penstock::node::metrics
