// Unix sockets as the broker needs them: bound safely, named by paths of any length, with the peer's identity. Private to edge/broker.
#pragma once

#include <string>

#include "base/core/result.h"
#include "edge/broker/server.h"
#include "os/core/fd.h"

namespace penstock::edge::broker {

/// A listening, non-blocking socket that appears at `path` only once its owner and mode are right. `gid` -1: 0600, else 0660 for that
/// group.
base::Result<os::UniqueFd> ListenAt(const std::string& path, gid_t gid);

/// A connected, blocking socket. Errors by errno, without words around.
base::Result<os::UniqueFd> ConnectTo(const std::string& path, int& error_number);

/// Who connected.
base::Result<Peer> ReadPeer(int connection);

/// The id of a group; -1 where there is none of this name.
gid_t FindGroup(const std::string& name);
std::string GroupName(gid_t gid);

inline constexpr gid_t kNoGroup = static_cast<gid_t>(-1);

}  // namespace penstock::edge::broker
