// The server's parts; private to this room. server.cc takes connections in, exchange.cc leads one through a request.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "edge/http/admission.h"
#include "edge/http/connection.h"
#include "edge/http/gzip.h"
#include "edge/http/listener.h"
#include "edge/http/server.h"
#include "edge/http/shield.h"

namespace penstock::edge::http {

struct Server::State : std::enable_shared_from_this<Server::State> {
  using Connection = internal::Connection;
  using Phase = Connection::Phase;

  struct Page {
    Handler handler;
    Access access;
  };

  State(os::Loop& l, ServerLimits m);

  // Connections come and go (server.cc).
  base::Status Watch(const internal::Listener& listener);
  void Accept(int listener);
  void PauseAccepting();
  void Admit(os::UniqueFd fd);
  std::size_t MostConnected() const;
  /// How a connection from this address is taken in, room made for it; nothing: there is none.
  enum class Place { kUsual, kSpare };
  std::optional<Place> FindPlace(const std::string& address);
  bool MakeRoom(std::size_t of_address, const std::string& address);
  bool MakeSpareRoom();
  void Cut(std::uint64_t id);
  void Refuse(const os::UniqueFd& fd);
  void Drop(std::uint64_t id);
  void Stop();
  Connection* Find(std::uint64_t id);
  /// Calls End when so much time has passed; in the place of an earlier one.
  void EndIn(std::uint64_t id, base::Duration time);
  void End(std::uint64_t id);
  void Relieve();
  void TrimSoon();

  // A connection goes on as far as it can without waiting (exchange.cc). False: it is over.
  void Ready(std::uint64_t id, std::uint32_t events);
  void Serve(std::uint64_t id);
  bool Step(std::uint64_t id, Connection& connection);
  bool Shake(std::uint64_t id, Connection& connection);
  bool Read(std::uint64_t id, Connection& connection);
  bool Write(std::uint64_t id, Connection& connection);
  bool Written(std::uint64_t id, Connection& connection);
  bool Depart(std::uint64_t id, Connection& connection);
  bool Drain(Connection& connection);
  bool Wait(Connection& connection, internal::Progress::Next next);

  // A request and its answer (exchange.cc).
  void Begin(std::uint64_t id, Connection& connection, std::size_t head);
  void Judge(std::uint64_t id, Connection& connection, Verdict verdict);
  void Queue(std::uint64_t id, Connection& connection);
  void Ask(std::uint64_t id, Connection& connection);
  void Answered(std::uint64_t id, std::uint64_t number, const Response& response);
  void Reply(Connection& connection, const Response& response, const Fields& more = {});
  void Leave(std::uint64_t request);
  Response NotFound() const;

  os::Loop& loop;
  const ServerLimits limits;
  std::map<std::string, Page> pages;
  std::vector<internal::Listener> listeners;
  base::TimerId accept_again = 0, relief = 0, trim = 0;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections;  // oldest first
  std::map<std::string, std::size_t> by_address;                     // how many of them
  std::size_t spare = 0;                                             // of them
  std::uint64_t next_id = 1, next_request = 1;
  std::map<std::uint64_t, std::uint64_t> connection_of;  // by request, those that have or want a place
  internal::Admission admission;
  GzipCache compressed;
  std::shared_ptr<internal::Shield> shield;
  std::optional<os::Loop> passwords;  // a thread of its own: a password takes longer than a page may wait; only where there are users

  mutable std::mutex mutex;  // guards the next
  Counts counts;
};

}  // namespace penstock::edge::http
