#include "protocol/systemd/notify.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/fd.h"

namespace penstock::protocol::systemd {

void Notify(std::string_view assignments) {
  const char* path =
      std::getenv("NOTIFY_SOCKET");  // NOLINT(concurrency-mt-unsafe): no code sets it
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path == nullptr || std::strlen(path) >= sizeof address.sun_path ||
      (path[0] != '/' && path[0] != '@'))
    return;
  std::strcpy(address.sun_path, path);
  const std::size_t length = offsetof(sockaddr_un, sun_path) + std::strlen(path);
  if (path[0] == '@') address.sun_path[0] = '\0';
  const os::UniqueFd socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket) return;
  (void)::sendto(socket.get(), assignments.data(), assignments.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                 reinterpret_cast<const sockaddr*>(&address), static_cast<socklen_t>(length));
}

base::Duration WatchdogInterval() {
  const char* interval =
      std::getenv("WATCHDOG_USEC");               // NOLINT(concurrency-mt-unsafe): no code sets it
  const char* pid = std::getenv("WATCHDOG_PID");  // NOLINT(concurrency-mt-unsafe)
  if (interval == nullptr ||
      (pid != nullptr && base::ParseUint(pid) != static_cast<std::uint64_t>(::getpid())))
    return {};
  constexpr std::uint64_t kMax = 86'400'000'000;  // a day
  return std::chrono::microseconds(std::min(base::ParseUint(interval).value_or(0), kMax));
}

}  // namespace penstock::protocol::systemd
