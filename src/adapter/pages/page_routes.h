// Serves the page at / with its files and its data: of this node from the cache, of other nodes
// through their agents.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "adapter/pages/other_nodes.h"
#include "adapter/pages/page_state_cache.h"
#include "base/executor.h"
#include "protocol/http/server.h"

namespace penstock::adapter::pages {

/// Adds the routes to the server. `nodes` is used on the server's loop, `cache` on the control
/// executor; `others` returns null while no other nodes are configured.
void AddPageRoutes(protocol::http::Server& server, base::Executor& control,
                   std::shared_ptr<PageStateCache> cache, std::function<OtherNodes*()> others);

}  // namespace penstock::adapter::pages
