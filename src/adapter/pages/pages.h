// Serves the HTTP pages for scrapers, probes and people: /metrics, /healthz, /readyz, /debug/state,
// and the page at / with its files and data below /ui/.
// Changes nothing.
//
// The pages have a thread of their own, so that TLS, compression and many scrapers never delay a
// decision. What they read of the node is rendered on the control loop, in one step for each
// request.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "adapter/pages/other_nodes.h"
#include "adapter/pages/page_state_cache.h"
#include "adapter/pages/web_protection.h"
#include "api/config/node_config.h"
#include "api/page_state.h"
#include "api/report.h"
#include "base/core/result.h"
#include "base/executor.h"
#include "base/published.h"
#include "node/metrics/page.h"
#include "os/loop.h"
#include "protocol/http/server.h"

namespace penstock::adapter::pages {

/// Sources of the pages: they read snapshots, never a vendor's library or a file.
struct PageSources {
  // The first four are called on the control loop.
  std::function<node::metrics::RenderedPage(node::metrics::PageFormat, node::metrics::Detail)>
      metrics;
  std::function<api::Report()> report;
  std::function<api::PageState()> page_state;
  std::function<api::PageHistory()> page_history;
  /// Called on the pages' own thread. Why the agent should be restarted: one sentence; empty: no
  /// reason.
  std::function<std::string()> hangs;
  /// Called on the pages' own thread. Why the agent is not ready yet: one sentence; empty once it
  /// is.
  std::function<std::string()> not_ready;
};

/// /healthz (and /health, the name in dcgm-exporter) answers 200 as long as no thread of the agent
/// hangs, else 503 with the one that does; /readyz answers 200, or 503 with why the agent is not
/// ready. Both are answered without the rest of the agent, which may be busy, and need no
/// credentials, since probes have none; everything else needs credentials if the web configuration
/// requires some. The other pages show process ids and command lines only to identified clients.
class Pages {
 public:
  /// `io` reads the files of the web configuration. Both executors outlive the pages or have
  /// stopped before.
  Pages(base::Executor& control, base::Executor& io, PageSources sources);
  ~Pages();

  /// Serves at an address as users write it (api/listen.h); nothing if it is "off". With a web
  /// configuration, nothing is revealed before the file was read and found valid. An invalid one is
  /// no error here: it is reported in `protection`, and read again when it changes. The error says
  /// what to do; after an error, Start may be called again. Call on the control loop or before it
  /// runs, like the destructor.
  base::Status Start(const api::HttpConfig& config);

  /// Switches to another web configuration file, or to none, and to the other nodes that the page
  /// shows; other settings stay as they were at the start. An invalid file changes nothing. On the
  /// control loop.
  void Configure(const api::HttpConfig& config, const api::PageConfig& page = {});

  /// Reads the web configuration and its certificates now, changed or not. Any thread.
  void Reload();

  /// "http://127.0.0.1:9400", with the port in use; empty if nothing is served.
  const std::string& where() const { return where_; }

  /// Status of the web configuration. Any thread.
  base::Published<ProtectionStatus>& protection() { return protection_status_; }

  /// What was served; zeros before Start. Any thread after the start.
  protocol::http::Counts counts() const {
    return server_ ? server_->counts() : protocol::http::Counts{};
  }

 private:
  using Make =
      std::function<protocol::http::Response(const protocol::http::Request&, const PageSources&)>;
  void Handle(const std::string& path, Make make, protocol::http::PageAccess access);
  void AddPages();
  void Protect(const std::string& file, WebProtection::Until until);

  base::Executor& control_;
  base::Executor& io_;
  const std::shared_ptr<const PageSources> sources_;
  std::string where_;
  std::string web_config_file_;
  base::Published<ProtectionStatus> protection_status_;
  os::Loop loop_{"pages"};
  api::PageConfig page_;
  std::shared_ptr<PageStateCache> cache_;
  std::optional<protocol::http::Server> server_;
  // Used on the pages' loop once that runs.
  std::optional<WebProtection> web_;
  std::optional<OtherNodes> others_;
};

}  // namespace penstock::adapter::pages
