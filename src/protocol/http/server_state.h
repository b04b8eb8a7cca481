// Declares the state of Server, which server.cc (accepts and ends connections) and exchange.cc
// (serves the requests of one connection) share. Private to protocol/http.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "protocol/http/active_policy.h"
#include "protocol/http/connection.h"
#include "protocol/http/gzip.h"
#include "protocol/http/listener.h"
#include "protocol/http/request_queue.h"
#include "protocol/http/server.h"

namespace penstock::protocol::http {

struct Server::State : std::enable_shared_from_this<Server::State> {
  using Connection = internal::Connection;
  using Phase = Connection::Phase;

  struct Page {
    Handler handler;
    PageAccess access;
  };

  State(os::Loop& l, ServerLimits m);

  // Accepting and ending connections (server.cc).
  base::Status Watch(const internal::Listener& listener);
  void Accept(int listener, bool local);
  void PauseAccepting();
  void Admit(os::UniqueFd fd, bool local);
  std::size_t MostConnected() const;
  /// How a connection from this address is accepted, after room was made for it; nothing: there is
  /// no room.
  enum class Place { kUsual, kSpare };
  std::optional<Place> FindPlace(const std::string& address);
  bool MakeRoom(std::size_t of_address, const std::string& address);
  bool MakeSpareRoom();
  void Cut(std::uint64_t id);
  void Refuse(const os::UniqueFd& fd);
  void Drop(std::uint64_t id);
  void Stop();
  Connection* Find(std::uint64_t id);
  /// Calls End after this time; replaces an earlier timer of the connection.
  void EndIn(std::uint64_t id, base::Duration time);
  void End(std::uint64_t id);
  void CutStalled();
  void TrimSoon();

  // Advancing a connection as far as possible without waiting (exchange.cc). false: it is over.
  void Ready(std::uint64_t id, std::uint32_t events);
  void Serve(std::uint64_t id);
  bool Step(std::uint64_t id, Connection& connection);
  bool ContinueHandshake(std::uint64_t id, Connection& connection);
  bool Read(std::uint64_t id, Connection& connection);
  bool Write(std::uint64_t id, Connection& connection);
  bool Written(std::uint64_t id, Connection& connection);
  bool Depart(std::uint64_t id, Connection& connection);
  bool Drain(Connection& connection);
  bool Wait(Connection& connection, internal::Progress::Next next);

  // Requests and their responses (exchange.cc).
  void Begin(std::uint64_t id, Connection& connection, std::size_t head);
  void Judge(std::uint64_t id, Connection& connection, AuthVerdict verdict);
  void Queue(std::uint64_t id, Connection& connection);
  void CallHandler(std::uint64_t id, Connection& connection);
  void Answered(std::uint64_t id, std::uint64_t number, const Response& response);
  void Reply(Connection& connection, const Response& response, const Fields& more = {});
  void Leave(std::uint64_t request);
  Response NotFound() const;

  os::Loop& loop;
  const ServerLimits limits;
  std::map<std::string, Page> pages;
  std::vector<internal::Listener> listeners;
  base::TimerId accept_again = 0, stall_check = 0, trim = 0;
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections;  // oldest first
  std::map<std::string, std::size_t> by_address;  // number of connections, by client address
  std::size_t spare = 0;                          // number of connections in spare places
  std::uint64_t next_id = 1, next_request = 1;
  std::map<std::uint64_t, std::uint64_t>
      connection_of;  // connection by request, for requests that have a place or wait for one
  internal::RequestQueue queue;
  GzipCache compressed;
  std::shared_ptr<internal::ActivePolicy> policy;
  std::optional<os::Loop> passwords;  // a thread of its own, because checking a password takes
                                      // longer than a page may wait; only if there are users

  mutable std::mutex mutex;  // guards `counts`
  Counts counts;
};

}  // namespace penstock::protocol::http
