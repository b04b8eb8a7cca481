// One datagram.
#include "edge/systemd/notify.h"

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>

#include "os/core/fd.h"

namespace penstock::edge::systemd {

void Notify(std::string_view assignments) {
  const char* path = std::getenv("NOTIFY_SOCKET");  // NOLINT(concurrency-mt-unsafe): nobody sets it
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path == nullptr || std::strlen(path) >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@')) return;
  std::strcpy(address.sun_path, path);
  const std::size_t length = offsetof(sockaddr_un, sun_path) + std::strlen(path);
  if (path[0] == '@') address.sun_path[0] = '\0';
  const os::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return;
  (void)::sendto(socket.get(), assignments.data(), assignments.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                 reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(length));
}

}  // namespace penstock::edge::systemd
