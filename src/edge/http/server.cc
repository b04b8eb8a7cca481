// Connections of the page server: read a head, write an answer, close. Knows no page's content.
#include "edge/http/server.h"

#include <array>
#include <cerrno>
#include <ctime>
#include <map>
#include <vector>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "edge/http/listener.h"
#include "edge/http/request.h"

namespace penstock::edge::http {

namespace {

using namespace std::chrono_literals;

constexpr base::Duration kAcceptAgain = 1s;      // after running out of descriptors
constexpr std::size_t kMostDrained = 64u << 10;  // of what a client sends beyond its request

std::string_view Phrase(int status) {
  switch (status) {
    case 200: return "OK";
    case 400: return "Bad Request";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 431: return "Request Header Fields Too Large";
    case 503: return "Service Unavailable";
    default: return "Status";
  }
}

/// "Sat, 21 Nov 2026 03:42:00 GMT" (RFC 9110, 5.6.7).
std::string HttpDate(base::WallTime time) {
  const std::time_t seconds = std::chrono::system_clock::to_time_t(time);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  std::array<char, 40> buffer{};
  return {buffer.data(), std::strftime(buffer.data(), buffer.size(), "%a, %d %b %Y %H:%M:%S GMT", &utc)};
}

std::string Serialize(const Response& response, bool with_body, base::WallTime now) {
  std::string text;
  text.reserve(256 + (with_body ? response.body.size() : 0));
  text.append("HTTP/1.1 ").append(std::to_string(response.status)).append(" ").append(Phrase(response.status));
  text.append("\r\nDate: ").append(HttpDate(now));
  text.append("\r\nContent-Type: ").append(response.content_type);
  text.append("\r\nContent-Length: ").append(std::to_string(response.body.size()));
  if (response.status == 405) text.append("\r\nAllow: GET, HEAD");
  text.append("\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n");
  if (with_body) text.append(response.body);
  return text;
}

struct Connection {
  enum class Phase { kReading, kWriting, kDraining };

  os::UniqueFd fd;
  base::TimerId deadline = 0;
  Phase phase = Phase::kReading;
  std::string input;
  std::string output;
  std::size_t written = 0;
  std::size_t drained = 0;
};

}  // namespace

struct Server::State {
  State(os::Loop& l, ServerLimits m) : loop(l), limits(m) {}

  void Accept();
  void Admit(os::UniqueFd fd);
  void PauseAccepting();
  void Serve(std::uint64_t id);
  bool Read(Connection& connection);
  bool Write(Connection& connection);
  bool Drain(Connection& connection) const;
  void Answer(Connection& connection, const Response& response, bool with_body);
  void Respond(Connection& connection, std::string_view head);
  void Drop(std::uint64_t id);

  os::Loop& loop;
  const ServerLimits limits;
  std::map<std::string, Handler> handlers;
  internal::Listener listener;
  std::string path;  // of the unix socket
  base::TimerId accept_again = 0;
  std::map<std::uint64_t, Connection> connections;  // oldest first
  std::uint64_t next_id = 1;
};

Server::Server(os::Loop& loop, ServerLimits limits) : state_(std::make_unique<State>(loop, limits)) {}
Server::~Server() { Stop(); }

void Server::Handle(std::string path, Handler handler) { state_->handlers[std::move(path)] = std::move(handler); }

base::Status Server::Start(const Address& address) {
  ASSIGN(state_->listener, internal::Listen(address));
  state_->path = address.path;
  return state_->loop.Watch(state_->listener.fd.get(), EPOLLIN, [state = state_.get()](std::uint32_t) { state->Accept(); });
}

void Server::Stop() {
  while (!state_->connections.empty()) state_->Drop(state_->connections.begin()->first);
  if (!state_->listener.fd) return;
  state_->loop.Cancel(state_->accept_again);
  state_->loop.Unwatch(state_->listener.fd.get());
  if (!state_->path.empty()) ::unlink(state_->path.c_str());
  state_->listener = {};
}

const std::string& Server::where() const { return state_->listener.where; }
std::uint16_t Server::port() const { return state_->listener.port; }

void Server::State::Accept() {
  while (true) {
    os::UniqueFd fd(::accept4(listener.fd.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      Admit(std::move(fd));
      continue;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) PauseAccepting();
    if (errno != EINTR && errno != ECONNABORTED) return;
  }
}

/// The listener stays readable while there is no descriptor to accept with: without a pause the loop would spin.
void Server::State::PauseAccepting() {
  loop.Unwatch(listener.fd.get());
  accept_again = loop.PostAfter(kAcceptAgain, [this] {
    accept_again = 0;
    (void)loop.Watch(listener.fd.get(), EPOLLIN, [this](std::uint32_t) { Accept(); }).ok();
  });
}

void Server::State::Admit(os::UniqueFd fd) {
  if (connections.size() >= limits.connections) Drop(connections.begin()->first);
  const std::uint64_t id = next_id++;
  Connection& connection = connections[id];
  connection.fd = std::move(fd);
  connection.deadline = loop.PostAfter(limits.deadline, [this, id] { Drop(id); });
  if (!loop.Watch(connection.fd.get(), EPOLLIN, [this, id](std::uint32_t) { Serve(id); }).ok()) Drop(id);
}

void Server::State::Drop(std::uint64_t id) {
  const auto found = connections.find(id);
  if (found == connections.end()) return;
  loop.Cancel(found->second.deadline);
  loop.Unwatch(found->second.fd.get());
  connections.erase(found);
}

/// Goes on with a connection as far as it can without waiting.
void Server::State::Serve(std::uint64_t id) {
  const auto found = connections.find(id);
  if (found == connections.end()) return;
  Connection& connection = found->second;
  bool alive = true;
  if (connection.phase == Connection::Phase::kReading) alive = Read(connection);
  if (alive && connection.phase == Connection::Phase::kWriting) alive = Write(connection);
  if (alive && connection.phase == Connection::Phase::kDraining) alive = Drain(connection);
  if (!alive) Drop(id);
}

bool Server::State::Read(Connection& connection) {
  std::array<char, 4096> buffer;
  while (true) {
    const ssize_t count = ::recv(connection.fd.get(), buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno == EAGAIN;
    if (count == 0) return false;
    connection.input.append(buffer.data(), static_cast<std::size_t>(count));
    const std::size_t head = HeadLength(connection.input);
    if (head > kMostHeadBytes || (head == 0 && connection.input.size() > kMostHeadBytes)) {
      Answer(connection, {.status = 431, .body = "the head of the request is too large\n"}, true);
      return true;
    }
    if (head > 0) {
      Respond(connection, std::string_view(connection.input).substr(0, head));
      return true;
    }
  }
}

void Server::State::Respond(Connection& connection, std::string_view head) {
  const auto request = ParseHead(head);
  if (!request.ok()) return Answer(connection, {.status = 400, .body = request.error().message() + "\n"}, true);
  if (request->method != "GET" && request->method != "HEAD")
    return Answer(connection, {.status = 405, .body = "pages can only be read here\n"}, true);
  const bool with_body = request->method == "GET";
  const auto found = handlers.find(request->path);
  if (found != handlers.end()) return Answer(connection, found->second(), with_body);
  std::string here;
  for (const auto& [known, handler] : handlers) here += known + "\n";
  Answer(connection, {.status = 404, .body = "there is no such page; there are:\n" + here}, with_body);
}

void Server::State::Answer(Connection& connection, const Response& response, bool with_body) {
  connection.output = Serialize(response, with_body, loop.clock().Wall());
  connection.phase = Connection::Phase::kWriting;
}

bool Server::State::Write(Connection& connection) {
  while (connection.written < connection.output.size()) {
    const ssize_t count = ::send(connection.fd.get(), connection.output.data() + connection.written,
                                 connection.output.size() - connection.written, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return loop.Rewatch(connection.fd.get(), EPOLLOUT).ok();
    if (count < 0) return false;
    connection.written += static_cast<std::size_t>(count);
  }
  // Closing while the client still sends would reset the connection and could take the answer with it.
  ::shutdown(connection.fd.get(), SHUT_WR);
  connection.output = {};
  connection.phase = Connection::Phase::kDraining;
  return loop.Rewatch(connection.fd.get(), EPOLLIN).ok();
}

bool Server::State::Drain(Connection& connection) const {
  std::array<char, 4096> buffer;
  while (connection.drained < kMostDrained) {
    const ssize_t count = ::recv(connection.fd.get(), buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 && errno == EAGAIN;
    connection.drained += static_cast<std::size_t>(count);
  }
  return false;
}

}  // namespace penstock::edge::http
