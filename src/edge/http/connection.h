// What the server keeps of a connection; private to this room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/executor.h"
#include "edge/http/request.h"
#include "edge/http/stream.h"

namespace penstock::edge::http::internal {

struct Shield;

struct Connection {
  enum class Phase {
    kShaking,   ///< TLS is being agreed on
    kReading,   ///< a head
    kIdle,      ///< before the next one
    kChecking,  ///< its credentials
    kWaiting,   ///< for a place among those that are answered
    kAsking,    ///< its handler
    kWriting,
    kDraining,  ///< what the client still sends, before it closes
  };

  /// `others`: how many of this client's address are connected, this one among them, for as long as this one is.
  Connection(os::UniqueFd fd, std::string client, const std::size_t& others, std::shared_ptr<Shield> before, std::shared_ptr<const Tls> tls)
      : stream(std::move(fd), std::move(tls)), address(std::move(client)), of_address(others), shield(std::move(before)) {}

  /// Nothing is answered yet, or again: it costs little, and the first to go when there is no room.
  bool expendable() const { return phase == Phase::kShaking || phase == Phase::kReading || idle(); }

  /// Between two requests, or after the last one.
  bool idle() const { return phase == Phase::kIdle || phase == Phase::kDraining; }

  /// The client waits for us.
  bool ours() const { return phase == Phase::kChecking || phase == Phase::kWaiting || phase == Phase::kAsking; }

  Stream stream;
  const std::string address;
  const std::size_t& of_address;
  bool spare = false;                    ///< in one of the places that are kept for what is open to everybody
  const std::shared_ptr<Shield> shield;  ///< that it came through
  Phase phase = Phase::kReading;
  base::TimerId timer = 0;
  base::TimePoint deadline;    ///< of the request
  base::TimePoint progressed;  ///< when the client last took some of the answer
  std::uint64_t number = 0;    ///< of its request, over all connections
  std::string input;
  Request request;
  bool keep_alive = false;
  std::string head;  ///< of the answer
  std::shared_ptr<const std::string> body;
  std::size_t written = 0;  ///< of both
  std::size_t drained = 0;
  bool shaking_begun = false;  ///< its first byte was looked at
};

}  // namespace penstock::edge::http::internal
