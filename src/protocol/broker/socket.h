// Creates and connects the broker's unix sockets: with safe permissions, paths of any length and
// the peer's identity. Private to protocol/broker.
#pragma once

#include <optional>
#include <string>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "os/core/fd.h"
#include "protocol/broker/server.h"

namespace penstock::protocol::broker {

/// Returns a listening, non-blocking socket that appears at `path` only once its owner and mode are
/// right. `gid` -1: 0600, else 0660 for that group.
base::Result<os::UniqueFd> ListenAt(const std::string& path, gid_t gid);

/// Returns a connected, blocking socket. A failed connect sets `error_number` to errno, EAGAIN if
/// the peer did not accept the connection within `patience` (none: it waits indefinitely); the
/// error names only the path and errno's text.
base::Result<os::UniqueFd> ConnectTo(const std::string& path, int& error_number,
                                     std::optional<base::Duration> patience = std::nullopt);

/// Returns the identity of the process that connected.
base::Result<Peer> ReadPeer(int connection);

/// Returns the id of a group; -1 if no group has this name.
gid_t FindGroup(const std::string& name);
std::string GroupName(gid_t gid);

inline constexpr gid_t kNoGroup = static_cast<gid_t>(-1);

}  // namespace penstock::protocol::broker
