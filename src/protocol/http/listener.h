// Opens listening sockets, or takes over those that the service manager opened. Private to
// protocol/http.
#pragma once

#include <string>
#include <vector>

#include "os/core/fd.h"
#include "protocol/http/server.h"

namespace penstock::protocol::http::internal {

struct Listener {
  os::UniqueFd fd;
  std::string where;  ///< "http://127.0.0.1:9400", "unix:/run/x.sock"
  std::uint16_t port = 0;
  std::string path;    ///< of a unix socket that the agent created and removes
  bool local = false;  ///< only programs of this machine reach it
};

/// Returns one listener for a path or a host, or all matching sockets of the service manager.
/// kAlreadyExists if another program listens there; kNotFound if the service manager passed none;
/// other errors by errno, prefixed with the address.
base::Result<std::vector<Listener>> Listen(const Address& address);

/// Returns the client of a connection as limits count it: "127.0.0.1", "2001:db8::/64" (a client
/// with one such address has all of them), "unix".
std::string PeerOf(int fd);

}  // namespace penstock::protocol::http::internal
