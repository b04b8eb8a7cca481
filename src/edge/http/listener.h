// Opens sockets to listen on; private to this room.
#pragma once

#include "edge/http/server.h"
#include "os/core/fd.h"

namespace penstock::edge::http::internal {

struct Listener {
  os::UniqueFd fd;
  std::string where;  ///< "http://127.0.0.1:9400", "unix:/run/x.sock"
  std::uint16_t port = 0;
};

/// kAlreadyExists where another program listens there; other errors by errno, with the address in front.
base::Result<Listener> Listen(const Address& address);

}  // namespace penstock::edge::http::internal
