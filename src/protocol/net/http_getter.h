// Fetches small documents over HTTP/1.1 with libcurl: one GET each, bounded in size and time,
// without redirects and proxies. Does not retry.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "os/loop.h"

namespace penstock::protocol::net {

struct HttpGet {
  std::string url;              ///< "https://gpu2.example.com:9400/ui/state"
  std::string authorization;    ///< value of this header; empty: none
  std::string authority;        ///< PEM of the certificate authorities; empty: the system's
  std::string tag;              ///< of the content that the caller has; empty: none
  std::size_t most = 1u << 20;  ///< bytes of the body, uncompressed
  base::Duration deadline = std::chrono::seconds(3);
};

struct HttpGot {
  int status = 0;  ///< also 304, if `tag` is current
  std::string content_type;
  std::string tag;
  std::string body;
};

/// Use and destroy on the loop's thread.
class HttpGetter {
 public:
  using Done = std::function<void(base::Result<HttpGot>)>;

  /// `most_connections`: at one time; further requests wait, within their deadlines.
  HttpGetter(os::Loop& loop, int most_connections);
  ~HttpGetter();  ///< pending requests end without a call of their `done`

  /// Calls `done` from the loop, never from within Get. The error says what failed, without the
  /// address. The first call loads libcurl, which blocks for some milliseconds.
  void Get(HttpGet request, Done done);

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace penstock::protocol::net
