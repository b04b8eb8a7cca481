// Renders the metrics page from snapshots: measured values, health, shares and holders of devices,
// and the agent's own cost. Calls no vendor library and reads no file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/config/node_config.h"
#include "api/report.h"
#include "device/dialect.h"
#include "node/attribute/job_files.h"
#include "node/health/monitor.h"
#include "node/inventory/inventory.h"
#include "node/ledger/ledger.h"
#include "node/metrics/page.h"
#include "node/sample/samples.h"
#include "node/share/offer.h"
#include "node/usage/usage.h"

namespace penstock::node::metrics {

/// What one of the agent's own processes costs.
struct ProcessCost {
  std::string process;  ///< "agent", "worker-nvidia"
  std::uint64_t resident_bytes = 0;
  double cpu_seconds = 0;
};

/// Results of loading the configuration since the agent started.
struct ConfigReloads {
  std::uint64_t applied = 0, refused = 0;
  bool last_successful = true;
  base::WallTime last_applied{};
  std::size_t remarks = 0;  ///< on the configuration in force
};

/// Requests to an API server since the agent started.
struct ApiRequests {
  std::uint64_t reads = 0, writes = 0, streams = 0, retries = 0, failures = 0;
};

/// The state of the node at one moment.
struct Snapshots {
  std::shared_ptr<const inventory::Snapshot> inventory;     ///< never null
  std::shared_ptr<const ledger::Snapshot> ledger;           ///< never null
  std::shared_ptr<const sample::Snapshot> samples;          ///< null: nothing is collected
  std::shared_ptr<const usage::Snapshot> usage;             ///< null: usage is not accumulated
  std::shared_ptr<const std::vector<share::Offer>> offers;  ///< null: not known yet
  std::shared_ptr<const device::SharedDevices> servers;     ///< null: there are no servers
  std::shared_ptr<const attribute::DeviceJobs> jobs;        ///< null: none are known
};

/// Results of HTTP requests since the agent started.
struct HttpCounts {
  std::map<int, std::uint64_t> answers;  ///< by status
  std::uint64_t cut = 0, refused = 0;    ///< connections
  std::size_t open = 0;                  ///< connections
};

/// State of the configuration of TLS and credentials.
struct WebConfigCounts {
  std::uint64_t applied = 0, refused = 0;
  bool last_successful = true;
  base::WallTime certificate_ends{};  ///< the epoch: there is no certificate
};

/// A family with one series whose only label is `node`, under a name of another program.
struct NodeValue {
  std::string_view name, help;  ///< must outlive the page
  double value = 0;
};

/// Contents of the page that are not in the snapshots.
struct PageInputs {
  std::string version;
  base::WallTime now{};
  std::size_t queue_length = 0;
  std::vector<ProcessCost> processes;
  std::vector<health::EvidenceCount> evidence;
  std::vector<health::EvidenceCount> recent_evidence;  ///< within telemetry.errorsWindow
  health::HealthStatuses health;
  std::vector<health::TransitionCount> transitions;
  std::vector<health::ResetCount> resets;
  ConfigReloads reloads;
  std::optional<ApiRequests> api_requests;    ///< nothing: no API server is used
  std::optional<HttpCounts> http;             ///< nothing: no pages are served
  std::optional<WebConfigCounts> web_config;  ///< nothing: it does not exist
  std::vector<api::ValidationStep> validation;
  std::vector<NodeValue> node_values;
  base::Duration page_took{};  ///< of the previous page; zero: this is the first
};

/// Renders pages. An unknown value is omitted, never 0. Penstock's own families are those of
/// api::MetricFamilies, documented in docs/reference/metrics.md; those of vendors' exporters come
/// from their dialects. Caches the labels of devices and holders between pages. On one thread.
class MetricsRenderer {
 public:
  /// Returns null for an unknown vendor.

  explicit MetricsRenderer(device::DialectOf dialect_of);
  ~MetricsRenderer();

  /// Sets the look of the pages from now on. `node`: this machine's name, for labels that contain
  /// it.
  void Configure(const api::TelemetryConfig& config, const std::string& node);

  /// Adds samples to the counts over a window. Call for every published snapshot, whether or not it
  /// is rendered.
  void AddSample(const sample::Snapshot& samples, base::TimePoint now);

  std::string Make(const Snapshots& node, const PageInputs& inputs, PageFormat format,
                   Detail detail);

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

}  // namespace penstock::node::metrics
