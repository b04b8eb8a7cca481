// Opens sockets to listen on, or takes those that the service manager opened; private to this room.
#pragma once

#include <string>
#include <vector>

#include "edge/http/server.h"
#include "os/core/fd.h"

namespace penstock::edge::http::internal {

struct Listener {
  os::UniqueFd fd;
  std::string where;  ///< "http://127.0.0.1:9400", "unix:/run/x.sock"
  std::uint16_t port = 0;
  std::string path;  ///< of a unix socket that we made, to be removed
};

/// One for a path or a host, all that fit for sockets of the service manager. kAlreadyExists where another program listens there;
/// kNotFound where the service manager gave none; other errors by errno, with the address in front.
base::Result<std::vector<Listener>> Listen(const Address& address);

/// Who is connected, for what is counted by client: "127.0.0.1", "2001:db8::/64" (whoever has one such address has all of them), "unix".
std::string PeerOf(int fd);

}  // namespace penstock::edge::http::internal
