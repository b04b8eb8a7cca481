// Where the pages are served, as a user writes it. Opens nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/core/result.h"

namespace penstock::api {

/// The longest path that a unix socket's address holds (unix(7): sun_path without its terminating zero).
inline constexpr std::size_t kLongestSocketPath = 107;

/// Exactly one of: off; a unix socket's path; sockets that the service manager opened (sd_listen_fds(3)), those of a name or with an empty
/// one all; a host (empty: all addresses of the machine) and a port (0: any free one).
struct ListenAddress {
  bool off = false;
  std::string path;
  std::optional<std::string> systemd;
  std::string host;
  std::uint16_t port = 0;
};

/// Reads "off", "unix:/run/penstock/http.sock", "127.0.0.1:9400", "[::1]:9400", "localhost:9400", ":9400",
/// "systemd:" or "systemd:NAME". kInvalidArgument says what is wrong.
base::Result<ListenAddress> ParseListen(std::string_view text);

}  // namespace penstock::api
