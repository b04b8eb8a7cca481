// The pages that scrapers, probes and people read over HTTP: /metrics, /healthz, /readyz, /debug/state. Changes nothing.
//
// They have a thread of their own: TLS, compression and a storm of scrapers never hold up a decision, and what they read of the node is
// made on the control loop, in one step for each request.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "api/node_config.h"
#include "api/report.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "base/published.h"
#include "door/web_protection.h"
#include "edge/http/server.h"
#include "node/metrics/page.h"
#include "os/loop.h"

namespace penstock::door {

/// Where the pages come from: from snapshots, never from a vendor or a file.
struct PageSources {
  // On the control loop.
  std::function<node::metrics::Page(node::metrics::Format, node::metrics::Detail)> metrics;
  std::function<api::Report()> report;
  // On the pages' own thread.
  std::function<std::string()> hangs;      ///< why the agent is better started again: one sentence; empty: nothing
  std::function<std::string()> not_ready;  ///< why the agent is not ready yet: one sentence; empty once it is
};

/// /healthz (and /health, as dcgm-exporter calls it) says 200 as long as no thread of the agent hangs, else 503 and which one; /readyz 200,
/// or 503 and why the agent is not ready. Both are answered without the rest of the agent, which may be busy, and need no credentials,
/// since probes have none; everything else does where the web configuration asks for some. Process ids and command lines are on the other
/// pages for those alone who have proved who they are.
class Pages {
 public:
  /// Files of the web configuration are read on `io`. Both executors outlive the pages or have stopped before.
  Pages(base::Executor& control, base::Executor& io, PageSources sources);
  ~Pages();

  /// Serves at an address as users write it (api/listen.h); nothing where it is "off". Where there is a web configuration, nothing is told
  /// before it was read and found right; a wrong one is no error here but stays in `protection`, and is read again when it changes. The
  /// error says what to do; after one, Start may be called again. On the control loop, or before it runs; so is the destructor.
  base::Status Start(const api::HttpConfig& config);

  /// Takes another web configuration file, or none; the rest stays as it was started with. One that is wrong changes nothing. On the
  /// control loop.
  void Configure(const api::HttpConfig& config);

  /// Reads the web configuration and its certificates now, changed or not. Any thread.
  void Reload();

  /// "http://127.0.0.1:9400", with the port in use; empty where nothing is served.
  const std::string& where() const { return where_; }

  /// How the web configuration fares. Any thread.
  base::Published<ProtectionStatus>& protection() { return protection_status_; }

  /// What was served; nothing before Start. Any thread once it has started.
  edge::http::Counts counts() const { return server_ ? server_->counts() : edge::http::Counts{}; }

 private:
  using Make = std::function<edge::http::Response(const edge::http::Request&, const PageSources&)>;
  void Handle(const std::string& path, Make make, edge::http::Access access);
  void AddPages();
  void Protect(const std::string& file, WebProtection::Until until);

  base::Executor& control_;
  base::Executor& io_;
  const std::shared_ptr<const PageSources> sources_;
  std::string where_;
  std::string web_config_file_;
  base::Published<ProtectionStatus> protection_status_;
  os::Loop loop_{"pages"};
  std::optional<edge::http::Server> server_;
  std::optional<WebProtection> web_;  // on its loop once that runs
};

}  // namespace penstock::door
