// The head of an HTTP/1.x request, as far as serving pages needs it (RFC 9112). Reads no socket.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::edge::http {

inline constexpr std::size_t kMostHeadBytes = 8u << 10;

struct Request {
  std::string method;           ///< "GET"
  std::string path;             ///< "/metrics", as it was written; without the query
  std::string query;            ///< what follows the '?'
  std::string accept;           ///< all fields of that name, joined by commas; likewise the next
  std::string accept_encoding;  ///< "gzip, deflate"
  std::string authorization;    ///< "Basic YTpi"
  bool keep_alive = false;      ///< the client may ask again on this connection, and nothing but a head was announced
  bool identified = false;      ///< the client has proved who it is, by credentials or a verified certificate; set by the server
  base::Duration patience{};    ///< X-Prometheus-Scrape-Timeout-Seconds; 0 where it is absent or no sensible number
};

/// Length of the head that the text begins with, its empty line included; 0 where it has not all come yet.
std::size_t HeadLength(std::string_view text);

/// Reads a whole head. kInvalidArgument says what is wrong with it: 400.
base::Result<Request> ParseHead(std::string_view head);

}  // namespace penstock::edge::http
