// Takes over sockets that the service manager opened before it started the agent
// (sd_listen_fds(3)). Private to protocol/http.
#pragma once

#include <string>
#include <vector>

#include "base/core/result.h"
#include "os/core/fd.h"

namespace penstock::protocol::http::internal {

/// Returns the sockets with this name (FileDescriptorName=), or all of them if `name` is empty. The
/// caller owns them; they are close-on-exec and non-blocking. Each socket can be taken once.
/// kNotFound if there is none, kInvalidArgument if one is not a listening stream socket.
base::Result<std::vector<os::UniqueFd>> TakeActivated(const std::string& name);

}  // namespace penstock::protocol::http::internal
