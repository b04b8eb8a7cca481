// Parses the address at which the agent serves HTTP, as users write it. Opens no socket.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/result.h"

namespace penstock::api {

/// The longest path that a Unix socket address holds (unix(7): sun_path without its terminating
/// zero).
inline constexpr std::size_t kLongestSocketPath = 107;

/// Exactly one of: off; the path of a Unix socket; sockets that the service manager opened
/// (sd_listen_fds(3)), those with the given name or all of them if the name is empty; a host
/// (empty: all addresses of the machine) and a port (0: any free port).
struct ListenAddress {
  bool off = false;
  std::string path;
  std::optional<std::string> systemd;
  std::string host;
  std::uint16_t port = 0;
};

/// Reads "off", "unix:/run/penstock/http.sock", "127.0.0.1:9400", "[::1]:9400", "localhost:9400",
/// ":9400", "systemd:" or "systemd:NAME". Returns kInvalidArgument with a message that names the
/// mistake.
base::Result<ListenAddress> ParseListen(std::string_view text);

}  // namespace penstock::api
