// Reads what the agent needs to fetch the state of other nodes: credentials and certificate
// authorities. Fetches nothing.
#pragma once

#include <string>

#include "api/config/node_config.h"
#include "base/core/result.h"

namespace penstock::adapter::pages {

struct NodeAccess {
  std::string authorization;  ///< value of the header; empty: no credentials
  std::string authority;      ///< PEM; empty: the system's certificate authorities
};

/// Reads page.credentialsFile and page.caFile. A file of credentials that another user could read
/// or write is kPermissionDenied. Errors name the file and the remedy, never its content. Blocks.
base::Result<NodeAccess> LoadNodeAccess(const api::PageConfig& config);

}  // namespace penstock::adapter::pages
