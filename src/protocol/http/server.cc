// Accepts and ends the connections of the page server and makes room for new ones.
#include "protocol/http/server.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/http/server_state.h"
#include "protocol/net/trim.h"

namespace penstock::protocol::http {

namespace {

using namespace std::chrono_literals;

constexpr base::Duration kAcceptAgain = 1s;            // after running out of descriptors
constexpr base::Duration kStallCheckInterval = 250ms;  // while requests wait for a place
constexpr base::Duration kStalled = 1s;                // without progress in taking the response
constexpr base::Duration kTrim = 2s;                   // after a handshake
constexpr std::size_t kConnectedForOnePlace = 5;       // one served, the others reading or idle
constexpr std::size_t kSpare = 32;                     // connections beside these, for open pages
constexpr int kAcceptedAtOnce = 64;  // then the existing connections have their turn

}  // namespace

std::size_t Server::State::MostConnected() const {
  return std::max<std::size_t>(limits.connections, 1) * kConnectedForOnePlace;
}

Server::State::State(os::Loop& l, ServerLimits m)
    : loop(l),
      limits(m),
      queue(std::max<std::size_t>(m.connections, 1)),
      policy(std::make_shared<internal::ActivePolicy>(l, l, Protection{})) {}

Server::Server(os::Loop& loop, ServerLimits limits)
    : state_(std::make_shared<State>(loop, limits)) {}
Server::~Server() { Stop(); }

void Server::Handle(std::string path, Handler handler, PageAccess access) {
  state_->pages[std::move(path)] = {std::move(handler), access};
}

base::Status Server::Start(const Address& address) {
  ASSIGN(auto listeners, internal::Listen(address));
  state_->listeners = std::move(listeners);
  for (const auto& listener : state_->listeners) TRY(state_->Watch(listener));
  return {};
}

void Server::Protect(Protection protection) {
  State& state = *state_;
  if (!protection.credentials.users.empty() && !state.passwords)
    state.passwords.emplace("passwords").Start();
  base::Executor& work =
      state.passwords ? static_cast<base::Executor&>(*state.passwords) : state.loop;
  if (protection.tls || protection.secrets) state.TrimSoon();
  state.policy = std::make_shared<internal::ActivePolicy>(state.loop, work, std::move(protection));
  std::vector<std::uint64_t> idle;
  for (const auto& [id, connection] : state.connections)
    if (connection->phase == State::Phase::kIdle) idle.push_back(id);
  for (const std::uint64_t id : idle) state.Drop(id);
}

void Server::Stop() { state_->Stop(); }

const std::string& Server::where() const {
  static const std::string nowhere;
  return state_->listeners.empty() ? nowhere : state_->listeners.front().where;
}

std::uint16_t Server::port() const {
  return state_->listeners.empty() ? 0 : state_->listeners.front().port;
}

Counts Server::counts() const {
  std::lock_guard lock(state_->mutex);
  return state_->counts;
}

void Server::State::Stop() {
  if (passwords) passwords->Stop();
  while (!connections.empty()) Drop(connections.begin()->first);
  loop.Cancel(accept_again);
  loop.Cancel(stall_check);
  loop.Cancel(trim);
  for (const auto& listener : listeners) {
    loop.Unwatch(listener.fd.get());
    if (!listener.path.empty()) ::unlink(listener.path.c_str());
  }
  listeners.clear();
}

base::Status Server::State::Watch(const internal::Listener& listener) {
  const int fd = listener.fd.get();
  return loop.Watch(fd, EPOLLIN,
                    [this, fd, local = listener.local](std::uint32_t) { Accept(fd, local); });
}

void Server::State::Accept(int listener, bool local) {
  for (int turn = 0; turn < kAcceptedAtOnce; ++turn) {
    os::UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      Admit(std::move(fd), local);
      continue;
    }
    if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) PauseAccepting();
    if (errno != EINTR && errno != ECONNABORTED) return;
  }
}

/// The listener stays readable while there is no descriptor to accept with; without a pause the
/// loop would spin.
void Server::State::PauseAccepting() {
  if (accept_again != 0) return;
  for (const auto& listener : listeners) loop.Unwatch(listener.fd.get());
  accept_again = loop.PostAfter(kAcceptAgain, [this] {
    accept_again = 0;
    for (const auto& listener : listeners) (void)Watch(listener).ok();
  });
}

void Server::State::Admit(os::UniqueFd fd, bool local) {
  const int raw = fd.get();
  const std::string address = internal::PeerOf(raw);
  const auto place = FindPlace(address);
  if (!place) return Refuse(fd);
  const std::uint64_t id = next_id++;
  const auto& tls = policy->protection.tls;
  std::size_t& of_address = by_address[address];
  ++of_address;
  auto& connection = connections[id] =
      std::make_unique<Connection>(std::move(fd), address, of_address, policy, tls);
  connection->local = local;
  connection->spare = place == Place::kSpare;
  spare += connection->spare ? 1 : 0;
  if (tls) connection->phase = Phase::kTls;
  connection->deadline = loop.clock().Now() + limits.deadline;
  EndIn(id, limits.deadline);
  {
    std::lock_guard lock(mutex);
    counts.open = connections.size();
  }
  if (!loop.Watch(raw, EPOLLIN, [this, id](std::uint32_t events) { Ready(id, events); }).ok())
    return Drop(id);
  // A probe sends its request at once, and may leave its spare place by the next turn of the loop.
  if (connection->spare && connection->phase == Phase::kReading) Serve(id);
}

std::optional<Server::State::Place> Server::State::FindPlace(const std::string& address) {
  const auto same = by_address.find(address);
  if (connections.size() - spare < MostConnected() ||
      MakeRoom(same == by_address.end() ? 0 : same->second, address))
    return Place::kUsual;
  if (spare < kSpare || MakeSpareRoom()) return Place::kSpare;
  return std::nullopt;
}

/// All addresses that want places get equally many. For a new connection of another address, closes
/// an idle connection of the address that has the most, else its oldest, which has had the most
/// time. Closes one that is being served only if its address has more connections than the new
/// one's will have. An address that itself has the most gives up one of its own that is not being
/// served.
bool Server::State::MakeRoom(std::size_t of_address, const std::string& address) {
  std::uint64_t victim = 0;
  std::pair<std::size_t, int> most;
  for (const auto& [id, connection] : connections) {
    const bool expendable = connection->expendable();
    const bool may_end = connection->address == address
                             ? expendable
                             : connection->of_address > of_address + (expendable ? 0 : 1);
    if (connection->spare || !may_end) continue;
    const std::pair<std::size_t, int> weight{connection->of_address,
                                             (connection->idle() ? 1 : 0) + (expendable ? 1 : 0)};
    if (victim != 0 && weight <= most) continue;
    most = weight;
    victim = id;
  }
  if (victim != 0) Cut(victim);
  return victim != 0;
}

/// Closes the oldest spare connection of the address that has the most of them: a genuine probe
/// sends its request at once.
bool Server::State::MakeSpareRoom() {
  std::uint64_t victim = 0;
  std::size_t most = 0;
  for (const auto& [id, connection] : connections) {
    if (!connection->spare || !connection->expendable() || connection->of_address <= most) continue;
    most = connection->of_address;
    victim = id;
  }
  if (victim != 0) Cut(victim);
  return victim != 0;
}

/// Ends a connection to make room or because it took too long.
void Server::State::Cut(std::uint64_t id) {
  if (!Find(id)->idle()) {
    std::lock_guard lock(mutex);
    ++counts.cut;
  }
  Drop(id);
}

/// Answers with 503 if that fits one packet; impossible with TLS.
void Server::State::Refuse(const os::UniqueFd& fd) {
  {
    std::lock_guard lock(mutex);
    ++counts.refused;
  }
  if (policy->protection.tls) return;
  std::array<char, 4096> unread;  // the head, most likely: unread input would reset the connection
  (void)::recv(fd.get(), unread.data(), unread.size(), 0);
  const std::string text = "too many clients; try again soon\n";
  const std::string head =
      WriteHead({.status = 503}, {.length = text.size(), .now = loop.clock().Wall()});
  (void)::send(fd.get(), (head + text).data(), head.size() + text.size(), MSG_NOSIGNAL);
  ::shutdown(fd.get(), SHUT_WR);
}

Server::State::Connection* Server::State::Find(std::uint64_t id) {
  const auto found = connections.find(id);
  return found == connections.end() ? nullptr : found->second.get();
}

void Server::State::Drop(std::uint64_t id) {
  auto found = connections.extract(id);
  if (!found) return;
  const auto& connection = *found.mapped();
  loop.Cancel(connection.timer);
  loop.Unwatch(connection.stream.fd());
  {
    std::lock_guard lock(mutex);
    counts.open = connections.size();
  }
  if (connection.number != 0) Leave(connection.number);
  spare -= connection.spare ? 1 : 0;
  const auto same = by_address.find(connection.address);
  if (--same->second == 0) by_address.erase(same);
}

void Server::State::EndIn(std::uint64_t id, base::Duration time) {
  Connection& connection = *Find(id);
  loop.Cancel(connection.timer);
  connection.timer =
      loop.PostAfter(std::max(time, base::Duration::zero()), [this, id] { End(id); });
}

/// The connection's time is up. Sends 503 to a client that waits for the server; closes the
/// connection of a client that keeps the server waiting.
void Server::State::End(std::uint64_t id) {
  Connection& connection = *Find(id);
  connection.timer = 0;
  if (connection.serving()) {
    Reply(connection, Text(503, connection.phase == Phase::kHandling
                                    ? "the agent is too busy to answer; try again soon\n"
                                    : "too many clients; try again soon\n"));
    EndIn(id, 1s);
    return Serve(id);
  }
  Cut(id);
}

/// After a handshake, most of the pages that it needed of OpenSSL are not needed again, because
/// connections are kept.
void Server::State::TrimSoon() {
  if (trim != 0) return;
  trim = loop.PostAfter(kTrim, [this] {
    trim = 0;
    net::TrimLibrary();
  });
}

/// While requests wait for a place, closes connections whose clients take nothing of their
/// response.
void Server::State::CutStalled() {
  stall_check = 0;
  const base::TimePoint now = loop.clock().Now();
  std::vector<std::uint64_t> stalled;
  for (const auto& [id, connection] : connections)
    if (connection->phase == Phase::kWriting && now - connection->progressed >= kStalled)
      stalled.push_back(id);
  for (const std::uint64_t id : stalled) {
    if (!queue.crowded()) break;
    Cut(id);
  }
  if (queue.crowded()) stall_check = loop.PostAfter(kStallCheckInterval, [this] { CutStalled(); });
}

}  // namespace penstock::protocol::http
