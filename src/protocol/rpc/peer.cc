#include "protocol/rpc/peer.h"

#include <cerrno>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>

#include "os/core/fd.h"

namespace penstock::protocol::rpc {

PeerIdentity PeerOf(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return {.alive = true};
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const os::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int connected =
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  PeerIdentity peer{.alive = connected == 0 || (errno != ECONNREFUSED && errno != ENOENT)};
  // A connected unix socket has the credentials of the process that called listen (unix(7)).
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (connected == 0 &&
      ::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0) {
    peer.pid = credentials.pid;
    peer.uid = credentials.uid;
  }
  return peer;
}

}  // namespace penstock::protocol::rpc
