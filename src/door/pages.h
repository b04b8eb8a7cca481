// The pages that scrapers, probes and people read over HTTP: /metrics, /healthz, /readyz, /debug/state. Changes nothing.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/core/result.h"
#include "edge/http/server.h"
#include "os/loop.h"

namespace penstock::door {

/// Where the pages come from. Called on the pages' loop: from snapshots, never from a vendor or a file.
struct PageSources {
  std::function<std::string()> metrics;    ///< node::metrics::Render
  std::function<std::string()> report;     ///< api::ToJson of the report
  std::function<std::string()> not_ready;  ///< why the agent is not ready yet: one sentence; empty once it is
};

/// /healthz answers as long as the loop runs; /readyz with 200 or with 503 and the reason.
class Pages {
 public:
  Pages(os::Loop& loop, PageSources sources);

  /// Serves at an address as users write it (api/listen.h); nothing where it is "off". The error says what to do. On the loop's thread, or
  /// before it runs; so is the destructor.
  base::Status Start(std::string_view listen);

  /// "http://127.0.0.1:9400", with the port in use; empty where nothing is served.
  const std::string& where() const { return server_.where(); }

 private:
  edge::http::Server server_;
};

}  // namespace penstock::door
