// Parses the head of an HTTP/1.x request, as far as serving pages needs it (RFC 9112). Does no I/O.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/core/clock.h"
#include "base/core/result.h"

namespace penstock::protocol::http {

inline constexpr std::size_t kMaxHeadBytes = 8u << 10;

struct Request {
  std::string method;           ///< "GET"
  std::string path;             ///< "/metrics", as the client wrote it, without the query
  std::string query;            ///< the part after the '?'
  std::string accept;           ///< all fields of this name, joined by commas; likewise the next
  std::string accept_encoding;  ///< "gzip, deflate"
  std::string authorization;    ///< "Basic YTpi"
  std::string host;             ///< "localhost:9400", as the client wrote it; empty: not given
  std::string if_none_match;    ///< the entity tags of what the client has
  bool keep_alive =
      false;  ///< the client may send another request on this connection, and announced no body
  bool identified = false;  ///< the client proved its identity by credentials or a verified
                            ///< certificate; set by the server
  bool local = false;  ///< it arrived at a listener that only programs of this machine reach: a
                       ///< loopback address or a unix socket; set by the server
  base::Duration
      patience{};  ///< X-Prometheus-Scrape-Timeout-Seconds; 0 if absent or not a sensible number
};

/// Returns the length of the head that the text begins with, its empty line included; 0 if the head
/// is incomplete.
std::size_t HeadLength(std::string_view text);

/// Parses a complete head. kInvalidArgument says what is wrong with it; the server answers it with
/// 400.
base::Result<Request> ParseHead(std::string_view head);

}  // namespace penstock::protocol::http
