// Serves a few pages over HTTP/1.1, for scrapers and people: GET and HEAD, one request a connection. Knows no page's content.
//
// Written here because the library at hand (cpp-httplib of Debian 12) links OpenSSL and brotli for it and costs 3.5 MiB of PSS and two
// threads; this costs some kilobytes and none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "os/loop.h"

namespace penstock::edge::http {

/// A unix socket's path, or a host (empty: all addresses of the machine) and a port (0: any free one).
struct Address {
  std::string path;
  std::string host;
  std::uint16_t port = 0;
};

struct Response {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

/// Answers a GET. On the loop's thread, which waits for it: it reads snapshots and nothing else.
using Handler = std::function<Response()>;

struct ServerLimits {
  std::size_t connections = 64;                       ///< one more, and the oldest is dropped
  base::Duration deadline = std::chrono::seconds(5);  ///< for a whole connection
};

/// On the loop's thread, or before it runs and after it has stopped. Without a connection nothing runs.
class Server {
 public:
  explicit Server(os::Loop& loop, ServerLimits limits = {});
  ~Server();  ///< Stop
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// What a path ("/metrics") is answered with. Before Start.
  void Handle(std::string path, Handler handler);

  /// Opens the socket and serves. kAlreadyExists where another program listens there; kInvalidArgument for a host without address; else by
  /// errno. A unix socket left by a killed program is replaced.
  base::Status Start(const Address& address);

  /// Drops all connections, closes and removes the socket.
  void Stop();

  /// "http://127.0.0.1:9400" with the port in use, "unix:/run/x.sock"; empty while it does not listen.
  const std::string& where() const;
  std::uint16_t port() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::edge::http
