// Identifies the process that listens on a unix socket.
#pragma once

#include <string>

#include <sys/types.h>

namespace penstock::protocol::rpc {

struct PeerIdentity {
  bool alive = false;  ///< a process accepts connections there
  pid_t pid = 0;  ///< of the process that called listen; 0: unknown, or in another pid namespace
  uid_t uid = static_cast<uid_t>(-1);  ///< that process's effective user then; -1: unknown
};

/// Connects and closes the connection at once; never waits. A path that is no socket, or too long
/// for one, counts as alive with an unknown process.
PeerIdentity PeerOf(const std::string& path);

}  // namespace penstock::protocol::rpc
