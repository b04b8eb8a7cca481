// The metrics page: what devices measure, their health, shares and holders, and our own cost, from snapshots only. Calls no vendor, reads
// no file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/node_config.h"
#include "device/dialect.h"
#include "node/health/health.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/metrics/page.h"
#include "node/sample/samples.h"
#include "node/share/offer.h"
#include "node/usage/usage.h"

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
  std::size_t remarks = 0;  ///< on what is in force
};

/// What was asked of an API server since the agent started.
struct ApiRequests {
  std::uint64_t reads = 0, writes = 0, streams = 0, retries = 0, failures = 0;
};

/// What the node is at one moment.
struct Snapshots {
  std::shared_ptr<const inventory::Snapshot> inventory;     ///< never null
  std::shared_ptr<const ledger::Snapshot> ledger;           ///< never null
  std::shared_ptr<const sample::Snapshot> samples;          ///< null: nothing is collected
  std::shared_ptr<const usage::Snapshot> usage;             ///< null: nobody adds it up
  std::shared_ptr<const std::vector<share::Offer>> offers;  ///< null: not known yet
  std::shared_ptr<const device::SharedDevices> servers;     ///< null: there are none
};

/// What became of requests over HTTP since the agent started.
struct HttpCounts {
  std::map<int, std::uint64_t> answers;  ///< by status
  std::uint64_t cut = 0, refused = 0;    ///< connections
  std::size_t open = 0;                  ///< likewise
};

/// How the configuration of TLS and credentials fares.
struct WebConfig {
  std::uint64_t applied = 0, refused = 0;
  bool last_successful = true;
  base::WallTime certificate_ends{};  ///< the epoch: there is none
};

/// What the page tells besides the snapshots.
struct Figures {
  std::string version;
  base::WallTime now{};
  std::size_t queue_length = 0;
  std::vector<ProcessCost> processes;
  std::vector<health::EvidenceCount> evidence;
  std::vector<health::EvidenceCount> recent_evidence;  ///< within telemetry.xidWindow
  health::Statuses health;
  std::vector<health::TransitionCount> transitions;
  std::vector<health::ResetCount> resets;
  ConfigReloads reloads;
  std::optional<ApiRequests> api_requests;  ///< nothing: no API server is asked
  std::optional<HttpCounts> http;           ///< nothing: no pages are served
  std::optional<WebConfig> web_config;      ///< nothing: there is none
  base::Duration page_took{};               ///< the page before this one; zero: it is the first
};

/// Makes pages. What is not known is left out, never 0. Our own families are those of api::MetricFamilies, documented in
/// docs/reference/metrics.md; those of vendors' exporters are their dialects'. Keeps what is the same from page to page: the labels of
/// devices and holders. On one thread.
class Press {
 public:
  using DialectOf = std::function<const device::Dialect*(std::string_view vendor)>;  ///< null for a vendor that it does not know

  explicit Press(DialectOf dialect_of);
  ~Press();

  /// How pages look from now on. `node`: this machine's name, for labels that want it.
  void Configure(const api::TelemetryConfig& config, const std::string& node);

  /// What is counted over a window is counted from these samples too. Of every published snapshot, whether or not a page is made of it.
  void See(const sample::Snapshot& samples, base::TimePoint now);

  std::string Make(const Snapshots& node, const Figures& figures, Format format, Detail detail);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace penstock::node::metrics
