// An HTTP/1.1 server for tests whose handler determines every byte of an answer, with or without
// TLS.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "protocol/kube/testing/certificates.h"

namespace penstock::protocol::kube::testing {

struct HttpRequest {
  std::string method, target, body;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string client;                          ///< common name of the client's certificate
  int connection = 0;                          ///< counted from 1
};

/// The client's end of one connection.
class Peer {
 public:
  virtual ~Peer() = default;
  virtual void Send(std::string_view bytes) = 0;
  virtual void WaitUntilReceived() = 0;  ///< until the client's kernel has all that was sent
  virtual void WaitUntilClosed() = 0;    ///< by the client, or by the server's destructor
};

/// A complete answer with its length.
std::string Reply(int status, std::string_view body,
                  std::string_view headers = "Content-Type: application/json\r\n");
/// The head of an answer without a length, sent in chunks or ended by closing the connection.
inline constexpr std::string_view kChunkedHead =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n";
std::string Chunk(std::string_view data);

/// Listens on 127.0.0.1 from construction on; each connection has a thread, which runs the handler.
class Server {
 public:
  /// Answers the request; false closes the connection.
  using Handler = std::function<bool(const HttpRequest&, Peer&)>;

  explicit Server(Handler handler);  ///< without TLS
  Server(Handler handler, const Certificate& certificate,
         const std::string& client_authority);  ///< with TLS; the authority may be empty
  ~Server();

  int port() const;
  std::string url() const;  ///< "https://127.0.0.1:1234"

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock::protocol::kube::testing
