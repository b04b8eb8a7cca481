// Serves a few pages over HTTP/1.1, for scrapers and people: GET and HEAD, with or without TLS and credentials. Knows no page's content.
//
// Written here because the library at hand (cpp-httplib of Debian 12) links OpenSSL and brotli for it and costs 3.5 MiB of PSS and two
// threads; this costs some kilobytes and none.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "edge/http/guard.h"
#include "edge/http/request.h"
#include "edge/http/response.h"
#include "edge/http/tls.h"
#include "os/loop.h"

namespace penstock::edge::http {

/// A unix socket's path; sockets that the service manager opened, by their name or all ("" of it); or a host (empty: all addresses of the
/// machine) and a port (0: any free one).
struct Address {
  std::string path;
  std::optional<std::string> activated;
  std::string host;
  std::uint16_t port = 0;
};

/// Takes the answer to one request. Any thread, once; later, or where the client has gone, it does nothing.
using Answer = std::function<void(Response)>;

/// Answers a GET or HEAD, now or later; the request is there until it is answered. On the loop's thread, which waits for it. An answer that
/// does not come in time is given as 503.
using Handler = std::function<void(const Request&, Answer)>;

enum class Access {
  kGuarded,  ///< for those who bring credentials, where any are wanted
  kOpen,     ///< for everybody whom TLS lets in, and at once, whoever else is connected: the handler answers without waiting
};

struct ServerLimits {
  std::size_t connections = 64;  ///< requests that are answered at once; more wait, up to `queue`, and are then told 503. Four times as
                                 ///< many clients may be connected beside these, reading or idle, and a few more that ask for what
                                 ///< is open. One address has as many of all these places as any other that wants them
  base::Duration deadline = std::chrono::seconds(5);  ///< from a request's first byte, or a connection's begin, to the answer's last
  base::Duration queue = std::chrono::seconds(2);     ///< for a place among those that are answered
  base::Duration idle = std::chrono::seconds(125);    ///< for the next request: longer than people scrape in
};

/// At most `burst` requests at once, then one in `interval`, over all clients (exporter-toolkit's rate_limit).
struct RequestRate {
  base::Duration interval{};
  double burst = 0;
};

/// What stands before the pages; one that changes is a new one.
struct Protection {
  std::shared_ptr<const Tls> tls;          ///< null: none
  std::shared_ptr<const Secrets> secrets;  ///< of the credentials; not null where there are any
  Credentials credentials;
  Fields fields;  ///< of every answer
  std::optional<RequestRate> rate;
  std::string closed;  ///< not empty: what is not open to everybody is answered with 503 and this
};

/// Since the server began.
struct Counts {
  std::map<int, std::uint64_t> answers;  ///< by status
  std::uint64_t cut = 0;                 ///< connections ended because they took too long or to make room
  std::uint64_t refused = 0;             ///< connections that no room could be made for
  std::size_t open = 0;                  ///< connections just now
};

/// On the loop's thread, or before it runs and after it has stopped; where it says so, on any. Without a connection nothing runs. The
/// process ignores SIGPIPE.
class Server {
 public:
  explicit Server(os::Loop& loop, ServerLimits limits = {});
  ~Server();  ///< Stop
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// What a path ("/metrics") is answered with. Before Start.
  void Handle(std::string path, Handler handler, Access access = Access::kGuarded);

  /// Opens the socket and serves. kAlreadyExists where another program listens there; kInvalidArgument for a host without address; else by
  /// errno. A unix socket left by a killed program is replaced.
  base::Status Start(const Address& address);

  /// New connections and requests find this protection; what was begun ends under the old one. The first one is: none.
  void Protect(Protection protection);

  /// Drops all connections, closes and removes the socket.
  void Stop();

  /// "http://127.0.0.1:9400" with the port in use, "unix:/run/x.sock"; of several sockets the first. Empty while it does not listen.
  const std::string& where() const;
  std::uint16_t port() const;

  Counts counts() const;  ///< any thread

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace penstock::edge::http
