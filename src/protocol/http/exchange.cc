// Takes one connection through its requests: handshake, head, credentials, a place, the handler,
// the response.
#include <algorithm>
#include <array>
#include <utility>

#include <sys/epoll.h>
#include <sys/socket.h>

#include "protocol/http/accept.h"
#include "protocol/http/server_state.h"

namespace penstock::protocol::http {

namespace {

using namespace std::chrono_literals;
using internal::Progress;

constexpr std::size_t kMaxDrained = 64u << 10;      // of what a client sends after its request
constexpr std::size_t kLeastCompressed = 1024;      // a smaller body fits a packet uncompressed
constexpr base::Duration kDrain = 1s;               // for a client to close after its answer
constexpr base::Duration kFirstStallCheck = 250ms;  // at clients that keep others waiting
constexpr char kTlsRecord = 0x16;                   // a handshake's first byte (RFC 8446, 5.1)
constexpr std::string_view kWantsTls =
    "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: "
    "close\r\n\r\nthis server requires HTTPS\n";

/// Whether a list of entity tags has this one; by weak comparison (RFC 9110, 8.8.3.2).
bool Has(std::string_view tags, std::string_view tag) {
  return !tag.empty() && tags.find('"' + std::string(tag) + '"') != std::string_view::npos;
}

Response Unchanged(const Response& response) {
  return {.status = 304,
          .varies = response.varies,
          .fields = response.fields,
          .tag = response.tag,
          .kept = response.kept};
}

}  // namespace

/// While a response is prepared, only the client's disconnection matters.
void Server::State::Ready(std::uint64_t id, std::uint32_t events) {
  const Connection* connection = Find(id);
  if (connection == nullptr) return;
  if (connection->serving() && (events & (EPOLLHUP | EPOLLERR)) != 0) return Drop(id);
  Serve(id);
}

/// Advances a connection as far as possible without waiting. May be called recursively for the same
/// connection, because a verdict or a response may arrive at once. A caller of a function that may
/// call it must not use the connection afterwards.
void Server::State::Serve(std::uint64_t id) {
  Connection* connection = Find(id);
  while (connection != nullptr) {
    const Phase before = connection->phase;
    const std::uint64_t number = connection->number;
    if (!Step(id, *connection)) return Drop(id);
    connection = Find(id);
    if (connection != nullptr && connection->phase == before && connection->number == number)
      return;
  }
}

bool Server::State::Step(std::uint64_t id, Connection& connection) {
  switch (connection.phase) {
    case Phase::kTls: return ContinueHandshake(id, connection);
    case Phase::kReading:
    case Phase::kIdle: return Read(id, connection);
    case Phase::kWriting: return Write(id, connection);
    case Phase::kDraining: return Drain(connection);
    case Phase::kChecking:
    case Phase::kWaiting:
    case Phase::kHandling: break;
  }
  return true;
}

bool Server::State::Wait(Connection& connection, Progress::Next next) {
  if (next == Progress::Next::kClosed) return false;
  return loop
      .Rewatch(connection.stream.fd(), next == Progress::Next::kWantsWrite ? EPOLLOUT : EPOLLIN)
      .ok();
}

bool Server::State::ContinueHandshake(std::uint64_t id, Connection& connection) {
  char first = kTlsRecord;
  if (!std::exchange(connection.handshake_begun, true))
    (void)::recv(connection.stream.fd(), &first, 1, MSG_PEEK);
  if (first != kTlsRecord) {
    (void)::send(connection.stream.fd(), kWantsTls.data(), kWantsTls.size(), MSG_NOSIGNAL);
    return Depart(id, connection);
  }
  const Progress progress = connection.stream.Handshake();
  if (progress.next != Progress::Next::kDone) return Wait(connection, progress.next);
  connection.phase = Phase::kReading;
  TrimSoon();
  return true;
}

bool Server::State::Read(std::uint64_t id, Connection& connection) {
  std::array<char, 4096> buffer;
  while (true) {
    const std::size_t head = HeadLength(connection.input);
    if (head > kMaxHeadBytes || (head == 0 && connection.input.size() > kMaxHeadBytes)) {
      Reply(connection, Text(431, "the request header is too large\n"));
      return true;
    }
    if (head > 0) {
      Begin(id, connection, head);
      return true;
    }
    const Progress progress = connection.stream.Read(buffer.data(), buffer.size());
    if (progress.next != Progress::Next::kDone) return Wait(connection, progress.next);
    if (std::exchange(connection.phase, Phase::kReading) == Phase::kIdle) {
      connection.deadline = loop.clock().Now() + limits.deadline;
      EndIn(id, limits.deadline);
    }
    connection.input.append(buffer.data(), progress.count);
  }
}

/// Called when the head is complete.
void Server::State::Begin(std::uint64_t id, Connection& connection, std::size_t head) {
  // Nothing is read while a request is under way. If the client sends more (pipelining, a body),
  // the connection ends after the response.
  (void)loop.Rewatch(connection.stream.fd(), 0).ok();
  const bool alone = head == connection.input.size();
  auto request = ParseHead(std::string_view(connection.input).substr(0, head));
  connection.input = {};
  connection.keep_alive = false;
  if (!request.ok()) return Reply(connection, Text(400, request.error().message() + "\n"));
  connection.request = *std::move(request);
  connection.keep_alive = alone && connection.request.keep_alive && !connection.spare;
  connection.number = next_request++;
  connection.request.local = connection.local;
  connection.request.identified =
      connection.policy->protection.tls && connection.policy->protection.tls->identifies_clients();
  const base::TimePoint now = loop.clock().Now();
  if (connection.request.patience > 0s)
    connection.deadline = std::min(connection.deadline, now + connection.request.patience);
  const auto page = pages.find(connection.request.path);
  const bool open = page != pages.end() && page->second.access == PageAccess::kOpen;
  // A spare place is only for open pages, which are served without waiting. Other pages cost more
  // and need a regular place.
  if (!open && connection.spare)
    return Reply(connection, Text(503, "too many clients; try again soon\n"));
  if (!open && !policy->Admits(now))
    return Reply(connection,
                 Text(429, "too many requests; rate_limit of the web configuration is exceeded\n"));
  if (!open && !policy->protection.closed.empty())
    return Reply(connection, Text(503, policy->protection.closed + "\n"));
  if (open || !policy->authenticator) return Queue(id, connection);
  connection.phase = Phase::kChecking;
  policy->authenticator->Check(
      connection.request.authorization, connection.address,
      [self = weak_from_this(), id, number = connection.number](AuthVerdict verdict) {
        const auto state = self.lock();
        Connection* found = state ? state->Find(id) : nullptr;
        if (found == nullptr || found->number != number || found->phase != Phase::kChecking) return;
        state->Judge(id, *found, verdict);
        state->Serve(id);
      });
}

void Server::State::Judge(std::uint64_t id, Connection& connection, AuthVerdict verdict) {
  switch (verdict) {
    case AuthVerdict::kAllowed: connection.request.identified = true; return Queue(id, connection);
    case AuthVerdict::kLimited:
      return Reply(connection,
                   Text(429, "too many failed logins from your address; wait a minute\n"),
                   {{"Retry-After", "60"}});
    case AuthVerdict::kBusy:
      return Reply(connection, Text(503, "too many passwords to check; try again soon\n"),
                   {{"Retry-After", "1"}});
    case AuthVerdict::kDenied: break;
  }
  Fields challenges;
  if (policy->authenticator)
    for (const std::string& challenge : policy->authenticator->challenges())
      challenges.emplace_back("WWW-Authenticate", challenge);
  Reply(connection, Text(401, "valid credentials are required\n"), challenges);
}

/// The client is authorized. Cheap responses are sent at once; a page needs a place.
void Server::State::Queue(std::uint64_t id, Connection& connection) {
  const Request& request = connection.request;
  if (request.method != "GET" && request.method != "HEAD")
    return Reply(connection, Text(405, "only GET and HEAD are supported\n"));
  if (!pages.contains(request.path)) return Reply(connection, NotFound());
  if (pages.at(request.path).access == PageAccess::kOpen) return CallHandler(id, connection);
  connection_of[connection.number] = id;
  connection.phase = Phase::kWaiting;
  if (queue.Begin(connection.number, connection.address)) return CallHandler(id, connection);
  EndIn(id, std::min<base::Duration>(limits.queue, connection.deadline - loop.clock().Now()));
  if (stall_check == 0) stall_check = loop.PostAfter(kFirstStallCheck, [this] { CutStalled(); });
}

void Server::State::CallHandler(std::uint64_t id, Connection& connection) {
  connection.phase = Phase::kHandling;
  EndIn(id, connection.deadline - loop.clock().Now());
  const Handler& handler = pages.at(connection.request.path).handler;
  handler(connection.request,
          [self = weak_from_this(), id, number = connection.number](Response response) {
            const auto state = self.lock();
            if (!state) return;
            if (state->loop.InLoop()) return state->Answered(id, number, response);
            state->loop.Post([self, id, number, response = std::move(response)] {
              if (const auto there = self.lock()) there->Answered(id, number, response);
            });
          });
}

void Server::State::Answered(std::uint64_t id, std::uint64_t number, const Response& response) {
  Connection* connection = Find(id);
  if (connection == nullptr || connection->number != number ||
      connection->phase != Phase::kHandling)
    return;
  Reply(*connection, response);
  Serve(id);
}

/// Prepares the response; Write sends it.
void Server::State::Reply(Connection& connection, const Response& response, const Fields& more) {
  static const auto kNothing = std::make_shared<const std::string>();
  if (response.status == 200 && Has(connection.request.if_none_match, response.tag))
    return Reply(connection, Unchanged(response), more);
  std::shared_ptr<const std::string> body = response.body ? response.body : kNothing;
  bool gzip = false;
  if (body->size() >= kLeastCompressed && WantsGzip(connection.request.accept_encoding)) {
    if (auto packed = compressed.Get(body)) {
      body = std::move(packed);
      gzip = true;
    }
  }
  connection.keep_alive = connection.keep_alive && connection.policy == policy;
  Fields fields = policy->protection.fields;
  fields.insert(fields.end(), more.begin(), more.end());
  connection.head = WriteHead(response, {.gzip = gzip,
                                         .length = body->size(),
                                         .keep_alive = connection.keep_alive,
                                         .fields = &fields,
                                         .now = loop.clock().Wall()});
  connection.body = connection.request.method == "HEAD" ? kNothing : std::move(body);
  connection.written = 0;
  connection.progressed = loop.clock().Now();
  connection.phase = Phase::kWriting;
  std::lock_guard lock(mutex);
  ++counts.answers[response.status];
}

bool Server::State::Write(std::uint64_t id, Connection& connection) {
  const std::size_t head = connection.head.size(), all = head + connection.body->size();
  while (connection.written < all) {
    const bool in_head = connection.written < head;
    const std::string_view left =
        in_head ? std::string_view(connection.head).substr(connection.written)
                : std::string_view(*connection.body).substr(connection.written - head);
    const Progress progress = connection.stream.Write(left, in_head && all > head);
    if (progress.next != Progress::Next::kDone) return Wait(connection, progress.next);
    connection.written += progress.count;
    connection.progressed = loop.clock().Now();
  }
  return Written(id, connection);
}

/// The kernel has the whole response.
bool Server::State::Written(std::uint64_t id, Connection& connection) {
  connection.head = {};
  connection.body = nullptr;
  connection.request = {};
  if (connection.number != 0) Leave(std::exchange(connection.number, 0));
  if (connection.keep_alive) {
    connection.phase = Phase::kIdle;
    EndIn(id, limits.idle);
    return loop.Rewatch(connection.stream.fd(), EPOLLIN).ok();
  }
  return Depart(id, connection);
}

/// Closing while the client still sends would reset the connection and could discard the response.
bool Server::State::Depart(std::uint64_t id, Connection& connection) {
  connection.stream.EndWriting();
  connection.phase = Phase::kDraining;
  EndIn(id, kDrain);
  return loop.Rewatch(connection.stream.fd(), EPOLLIN).ok();
}

bool Server::State::Drain(Connection& connection) {
  std::array<char, 4096> buffer;
  while (connection.drained < kMaxDrained) {
    const ssize_t count = ::recv(connection.stream.fd(), buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 && errno == EAGAIN;
    connection.drained += static_cast<std::size_t>(count);
  }
  return false;
}

/// A request is over. The requests whose turn it is now are served in a later turn of the loop.
void Server::State::Leave(std::uint64_t request) {
  connection_of.erase(request);
  for (const std::uint64_t next : queue.End(request)) {
    loop.Post([weak = weak_from_this(), next] {
      const auto state = weak.lock();
      const auto found =
          state ? state->connection_of.find(next) : decltype(connection_of)::iterator{};
      if (!state || found == state->connection_of.end()) return;
      const std::uint64_t id = found->second;
      Connection* connection = state->Find(id);
      if (connection == nullptr || connection->phase != Phase::kWaiting) return;
      state->CallHandler(id, *connection);
      state->Serve(id);
    });
  }
}

Response Server::State::NotFound() const {
  std::string here;
  for (const auto& [known, page] : pages) here += known + "\n";
  return Text(404, "page not found; available pages:\n" + here);
}

}  // namespace penstock::protocol::http
