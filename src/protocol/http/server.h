// Serves a few pages over HTTP/1.1 to scrapers and people: GET and HEAD, with or without TLS and
// credentials. Handlers supply the content of the pages.
//
// Written here because the available library (cpp-httplib of Debian 12) links OpenSSL and brotli
// for it and costs 3.5 MiB of PSS and two threads; this server costs some kilobytes and no thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/core/clock.h"
#include "base/core/result.h"
#include "os/loop.h"
#include "protocol/http/authenticator.h"
#include "protocol/http/request.h"
#include "protocol/http/response.h"
#include "protocol/http/tls.h"

namespace penstock::protocol::http {

/// A unix socket's path; or sockets that the service manager opened, by their name or all (""); or
/// a host (empty: all addresses of the machine) and a port (0: any free one).
struct Address {
  std::string path;
  std::optional<std::string> activated;
  std::string host;
  std::uint16_t port = 0;
};

/// Takes the response to one request. Any thread, once. A later call, or one after the client has
/// gone, does nothing.
using Respond = std::function<void(Response)>;

/// Answers a GET or HEAD, now or later; the request stays valid until it is answered. Runs on the
/// loop's thread, which waits for it. A response that does not arrive in time is replaced by 503.
using Handler = std::function<void(const Request&, Respond)>;

enum class PageAccess {
  kGuarded,  ///< for clients with credentials, if any are required
  kOpen,     ///< for every client that TLS admits, and at once, however many are connected: the
             ///< handler answers without waiting
};

struct ServerLimits {
  std::size_t connections =
      64;  ///< requests that are served at once; more wait, up to `queue`, and then get 503. Four
           ///< times as many clients may be connected beside these, reading or idle, and a few more
           ///< that request open pages. Addresses that want these places get equally many of them
  base::Duration deadline =
      std::chrono::seconds(5);  ///< from a request's first byte, or the start of a connection, to
                                ///< the response's last byte
  base::Duration queue = std::chrono::seconds(2);   ///< how long a request waits for a place
  base::Duration idle = std::chrono::seconds(125);  ///< how long a connection waits for its next
                                                    ///< request: longer than usual scrape intervals
};

/// At most `burst` requests at once, then one per `interval`, over all clients (rate_limit of
/// exporter-toolkit).
struct RequestRate {
  base::Duration interval{};
  double burst = 0;
};

/// How the pages are protected. A change makes a new Protection.
struct Protection {
  std::shared_ptr<const Tls> tls;          ///< null: no TLS
  std::shared_ptr<const Secrets> secrets;  ///< checks the credentials; not null if there are any
  PageCredentials credentials;
  Fields fields;  ///< of every response
  std::optional<RequestRate> rate;
  std::string closed;  ///< not empty: pages that are not open are answered with 503 and this text
};

/// Counted since the server began.
struct Counts {
  std::map<int, std::uint64_t> answers;  ///< by status
  std::uint64_t cut = 0;      ///< connections closed because they took too long or to make room
  std::uint64_t refused = 0;  ///< connections for which no room could be made
  std::size_t open = 0;       ///< connections at present
};

/// On the loop's thread, or before it runs and after it has stopped; on any thread where a function
/// says so. Nothing runs while there is no connection. The process ignores SIGPIPE.
class Server {
 public:
  explicit Server(os::Loop& loop, ServerLimits limits = {});
  ~Server();  ///< calls Stop
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  /// Sets the handler of a path ("/metrics"). Before Start.
  void Handle(std::string path, Handler handler, PageAccess access = PageAccess::kGuarded);

  /// Opens the socket and serves. kAlreadyExists if another program listens there; kInvalidArgument
  /// for a host without address; other errors by errno. Replaces a unix socket that a killed
  /// program left.
  base::Status Start(const Address& address);

  /// Sets the protection of new connections and requests; those that have begun end under the old
  /// one. At first there is no protection.
  void Protect(Protection protection);

  /// Closes all connections, closes and removes the socket.
  void Stop();

  /// Returns "http://127.0.0.1:9400" with the port in use, or "unix:/run/x.sock"; with several
  /// sockets, the first. Empty while the server does not listen.
  const std::string& where() const;
  std::uint16_t port() const;

  Counts counts() const;  ///< any thread

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace penstock::protocol::http
