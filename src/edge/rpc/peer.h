// Who listens on a unix socket.
#pragma once

#include <string>

#include <sys/types.h>

namespace penstock::edge::rpc {

struct Peer {
  bool alive = false;                  ///< somebody accepts connections there
  pid_t pid = 0;                       ///< of the process that called listen; 0: not known, or in another pid namespace
  uid_t uid = static_cast<uid_t>(-1);  ///< that process' effective user then; -1: not known
};

/// Connects and hangs up at once; never waits. A path that is no socket's, or too long for one, counts as alive with nobody known.
Peer PeerOf(const std::string& path);

}  // namespace penstock::edge::rpc
