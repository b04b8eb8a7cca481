// Sockets that the service manager opened before it started us (sd_listen_fds(3)); private to this room.
#pragma once

#include <string>
#include <vector>

#include "base/core/result.h"
#include "os/core/fd.h"

namespace penstock::edge::http::internal {

/// Those with this name (FileDescriptorName=), or all where it is empty; ours from then on, closed on exec and never blocking. Each can be
/// taken once. kNotFound where there is none, kInvalidArgument for one that is no listening stream socket.
base::Result<std::vector<os::UniqueFd>> TakeActivated(const std::string& name);

}  // namespace penstock::edge::http::internal
