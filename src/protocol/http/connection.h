// Holds the server's state of one client connection. Private to protocol/http.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/executor.h"
#include "protocol/http/request.h"
#include "protocol/http/stream.h"

namespace penstock::protocol::http::internal {

struct ActivePolicy;

struct Connection {
  enum class Phase {
    kTls,       ///< the TLS handshake is under way
    kReading,   ///< reading a request's head
    kIdle,      ///< waiting for the next request
    kChecking,  ///< its credentials are being checked
    kWaiting,   ///< waiting for a place among the requests that are served
    kHandling,  ///< its handler prepares the response
    kWriting,
    kDraining,  ///< discarding what the client still sends, before closing
  };

  /// `others`: how many connections this client's address has, this one included; it outlives the
  /// connection.
  Connection(os::UniqueFd fd, std::string client, const std::size_t& others,
             std::shared_ptr<ActivePolicy> before, std::shared_ptr<const Tls> tls)
      : stream(std::move(fd), std::move(tls)),
        address(std::move(client)),
        of_address(others),
        policy(std::move(before)) {}

  /// No response is under way: the connection costs little, and is closed first to make room.
  bool expendable() const { return phase == Phase::kTls || phase == Phase::kReading || idle(); }

  /// The connection is between two requests, or after the last one.
  bool idle() const { return phase == Phase::kIdle || phase == Phase::kDraining; }

  /// The client waits for the server.
  bool serving() const {
    return phase == Phase::kChecking || phase == Phase::kWaiting || phase == Phase::kHandling;
  }

  Stream stream;
  const std::string address;
  const std::size_t& of_address;
  bool local = false;                          ///< Request::local
  bool spare = false;                          ///< in one of the places reserved for open pages
  const std::shared_ptr<ActivePolicy> policy;  ///< under which it was accepted
  Phase phase = Phase::kReading;
  base::TimerId timer = 0;
  base::TimePoint deadline;    ///< of the request
  base::TimePoint progressed;  ///< when the client last took part of the response
  std::uint64_t number = 0;    ///< of its request, counted over all connections
  std::string input;
  Request request;
  bool keep_alive = false;
  std::string head;  ///< of the response
  std::shared_ptr<const std::string> body;
  std::size_t written = 0;  ///< bytes of head and body
  std::size_t drained = 0;
  bool handshake_begun = false;  ///< its first byte was inspected
};

}  // namespace penstock::protocol::http::internal
