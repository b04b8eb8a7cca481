// Serves the broker's connections on the control loop: nothing here blocks, everything is bounded.
#include "protocol/broker/server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <utility>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/lifetime.h"
#include "base/log.h"
#include "os/core/file.h"
#include "protocol/broker/client.h"
#include "protocol/broker/socket.h"

namespace penstock::protocol::broker {
namespace {

constexpr base::Duration kAcceptPause = std::chrono::seconds(1);

/// Limits of one turn of the loop: for one connection, and for accepted connections.
constexpr int kRequestsATurn = 8;
constexpr base::Duration kTimeATurn = std::chrono::milliseconds(1);
constexpr int kAcceptedATurn = 16;

/// The interface of the server for a connection: limits that depend on other connections.
class Host {
 public:
  virtual ~Host() = default;
  virtual base::Duration TakeRequest(uid_t user) = 0;
  virtual bool BeginWait(uid_t user) = 0;
  virtual void EndWait(uid_t user) = 0;
  /// Called when unsent output has grown.
  virtual void OutputGrew() = 0;
  virtual void Ended(int fd) = 0;
};

/// One peer's connection: reads a request, waits for its answer, reads the next.
class Connection final : public Session, public std::enable_shared_from_this<Connection> {
 public:
  Connection(os::Loop& loop, os::UniqueFd fd, Peer peer, const ServerLimits& limits,
             std::shared_ptr<const Server::Handler> handler, std::weak_ptr<Host> host)
      : loop_(loop),
        fd_(std::move(fd)),
        peer_(std::move(peer)),
        limits_(limits),
        handler_(std::move(handler)),
        host_(std::move(host)) {}

  base::Status Start();
  bool waits() const { return waits_; }
  std::size_t unread() const { return output_.size(); }
  const Peer& peer() const override { return peer_; }
  void Progress(const std::string& line) override { Write(line); }
  void Answer(const std::string& line) override;
  void Close() override;
  void OnClosed(std::function<void()> callback) override { closed_ = std::move(callback); }

 private:
  void Handle(std::uint32_t events);
  bool Reads() const { return fd_ && !serving_ && !no_more_ && pause_ == 0 && output_.empty(); }
  void Read();
  void Serve();
  bool MayServe(base::TimePoint begun, int served);
  void ServeLine(const std::string& line);
  void Refuse(const Error& error);
  void Write(const std::string& line);
  void Flush();
  void UpdateWatch();
  void RestartIdle();

  os::Loop& loop_;
  os::UniqueFd fd_;
  Peer peer_;
  const ServerLimits limits_;
  std::shared_ptr<const Server::Handler> handler_;
  std::weak_ptr<Host> host_;  // expired once the server has stopped
  std::function<void()> closed_;
  std::string input_, output_;
  bool serving_ = false;   // a request is not yet answered
  bool waits_ = false;     // that request has a place among those that wait
  bool in_serve_ = false;  // Serve is on the stack
  bool no_more_ = false;   // the peer sends nothing more, or nothing more is read
  std::size_t malformed_ = 0;
  std::uint32_t events_ = 0;
  base::TimerId idle_ = 0, pause_ = 0;  // pause_: no request is served until it ends
};

base::Status Connection::Start() {
  events_ = EPOLLIN | EPOLLRDHUP;
  TRY(loop_.Watch(fd_.get(), events_, base::IfAlive(this, &Connection::Handle)));
  RestartIdle();
  return {};
}

void Connection::Handle(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) {
    Flush();
    Serve();
  }
  if (!fd_) return;
  if ((events & (EPOLLIN | EPOLLRDHUP)) != 0) Read();
  if (!fd_) return;
  // A peer that has gone, or sends nothing more while it waits, has given up.
  if ((events & (EPOLLHUP | EPOLLERR)) != 0 || ((events & EPOLLRDHUP) != 0 && serving_))
    return Close();
  UpdateWatch();
}

// Reads one piece: other connections have their turn before the next one.
void Connection::Read() {
  if (!Reads()) return;
  std::array<char, 16384> chunk;
  const ssize_t got = ::recv(fd_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
  if (got == 0) no_more_ = true;
  if (got < 0 && errno != EAGAIN && errno != EINTR) return Close();
  if (got <= 0) return;
  input_.append(chunk.data(), static_cast<std::size_t>(got));
  Serve();
}

// Serves one request at a time: the rest of the input waits until the answer is given and sent.
void Connection::Serve() {
  if (std::exchange(in_serve_, true)) return;
  const base::TimePoint begun = loop_.clock().Now();
  for (int served = 0; fd_ && !serving_ && pause_ == 0 && output_.empty(); ++served) {
    const auto end = input_.find('\n');
    if (std::min(end, input_.size()) >= kMaxLineBytes) {
      Refuse(
          Error(Code::kInvalidArgument, "a request is longer than 64 KiB; closing the connection"));
      break;
    }
    if (end == std::string::npos || !MayServe(begun, served)) break;
    const std::string line = input_.substr(0, end);
    input_.erase(0, end + 1);
    ServeLine(line);
  }
  in_serve_ = false;
}

// Otherwise continues later: after the other connections' turn, or when the user may ask again.
bool Connection::MayServe(base::TimePoint begun, int served) {
  const auto host = host_.lock();
  if (!host) return false;
  const bool turn_over = served >= kRequestsATurn || loop_.clock().Now() - begun >= kTimeATurn;
  const base::Duration pause = turn_over ? base::Duration::zero() : host->TakeRequest(peer_.uid);
  if (!turn_over && pause <= base::Duration::zero()) return true;
  pause_ = loop_.PostAfter(pause, base::IfAlive(this, [](Connection& self) {
                             self.pause_ = 0;
                             self.Serve();
                             self.UpdateWatch();
                           }));
  return false;
}

void Connection::ServeLine(const std::string& line) {
  const auto request = DecodeRequest(line);
  if (!request.ok() && ++malformed_ >= limits_.malformed)
    return Refuse(Error(
        request.error().code(),
        request.error().message() + "; closing the connection after too many invalid requests"));
  if (!request.ok()) return Write(EncodeError(request.error()));
  const auto host = host_.lock();
  if (request->operation == Operation::kRun && host) {
    waits_ = host->BeginWait(peer_.uid);
    if (!waits_)
      return Write(EncodeError(Error(
          Code::kResourceExhausted,
          "too many programs of you or of all users are waiting for devices; try again later")));
  }
  serving_ = true;
  loop_.Cancel(std::exchange(idle_, 0));
  (*handler_)(shared_from_this(), *request);
}

// Sends an error and reads nothing more.
void Connection::Refuse(const Error& error) {
  input_.clear();
  no_more_ = true;
  Write(EncodeError(error));
}

void Connection::Answer(const std::string& line) {
  if (!fd_ || !serving_) return;
  serving_ = false;
  closed_ = nullptr;
  if (const auto host = host_.lock(); host && std::exchange(waits_, false))
    host->EndWait(peer_.uid);
  Write(line);
  RestartIdle();
  Serve();
  UpdateWatch();
}

void Connection::Write(const std::string& line) {
  if (!fd_) return;
  output_ += line;
  // A line break in JSON is only layout.
  std::replace(output_.end() - static_cast<std::ptrdiff_t>(line.size()), output_.end(), '\n', ' ');
  output_ += '\n';
  Flush();
  if (output_.size() > limits_.output_bytes) return Close();
  if (const auto host = host_.lock(); host && !output_.empty()) host->OutputGrew();
}

void Connection::Flush() {
  while (fd_ && !output_.empty()) {
    const ssize_t sent =
        ::send(fd_.get(), output_.data(), output_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) return Close();
    output_.erase(0, static_cast<std::size_t>(sent));
    if (!serving_) RestartIdle();
  }
}

// Watches for the events that can happen next: nothing is read while a request is served or has to
// wait, and the peer's end is watched only where it matters.
void Connection::UpdateWatch() {
  if (!fd_) return;
  if (no_more_ && !serving_ && pause_ == 0 && output_.empty()) return Close();
  std::uint32_t events = 0;
  if (Reads()) events |= EPOLLIN | EPOLLRDHUP;
  if (serving_ && !no_more_) events |= EPOLLRDHUP;
  if (!output_.empty()) events |= EPOLLOUT;
  if (events == events_) return;
  events_ = events;
  if (!loop_.Rewatch(fd_.get(), events).ok()) Close();
}

void Connection::RestartIdle() {
  loop_.Cancel(idle_);
  if (!fd_) return;
  idle_ = loop_.PostAfter(limits_.idle, base::IfAlive(this, &Connection::Close));
}

void Connection::Close() {
  if (!fd_) return;
  const auto self = shared_from_this();  // the server drops its reference
  loop_.Cancel(idle_);
  loop_.Cancel(pause_);
  loop_.Unwatch(fd_.get());
  const int number = fd_.get();
  const auto closed = std::exchange(closed_, nullptr);
  output_.clear();
  fd_.Reset();
  if (const auto host = host_.lock()) host->Ended(number);
  if (closed) closed();
}

}  // namespace

struct Server::State final : Host, std::enable_shared_from_this<Server::State> {
  os::Loop& loop;
  const std::string run_dir;
  const std::string group;
  const std::shared_ptr<const Handler> handler;
  const Limits limits;
  ClientShares shares;
  std::string access;
  os::UniqueFd listener;
  base::TimerId pause = 0;
  std::map<int, std::shared_ptr<Connection>> connections;

  State(os::Loop& l, std::string dir, std::string name, Handler h, Limits most)
      : loop(l),
        run_dir(std::move(dir)),
        group(std::move(name)),
        handler(std::make_shared<const Handler>(std::move(h))),
        limits(most),
        shares(most.shares, ::geteuid()) {}

  base::Status Start();
  void Stop();
  base::Status WatchListener();
  void Accept();
  void Admit(os::UniqueFd fd);
  void Pause();

  base::Duration TakeRequest(uid_t user) override { return shares.Take(user, loop.clock().Now()); }
  bool BeginWait(uid_t user) override { return shares.BeginWait(user); }
  void EndWait(uid_t user) override { shares.EndWait(user); }
  void OutputGrew() override;
  void Ended(int fd) override;
};

base::Status Server::State::Start() {
  TRY(os::MakeDirectories(run_dir));
  const std::string path = SocketPath(run_dir);
  const gid_t gid = FindGroup(group);
  base::Result<os::UniqueFd> made = ListenAt(path, gid);
  access = gid == kNoGroup ? "only root and the agent's user: there is no group " + group
                           : "members of group " + group;
  if (!made.ok() && gid != kNoGroup && made.error().code() == Code::kPermissionDenied) {
    made = ListenAt(path, kNoGroup);
    access =
        "only root and the agent's user: the agent may not assign the socket to group " + group;
  }
  if (!made.ok()) return made.error();
  listener = std::move(*made);
  return WatchListener();
}

base::Status Server::State::WatchListener() {
  return loop.Watch(listener.get(), EPOLLIN,
                    base::IfAlive(this, [](State& state, std::uint32_t) { state.Accept(); }));
}

void Server::State::Stop() {
  if (!listener) return;
  loop.Cancel(pause);
  loop.Unwatch(listener.get());
  listener.Reset();
  ::unlink(SocketPath(run_dir).c_str());
  const auto open = std::exchange(connections, {});
  for (const auto& [fd, connection] : open) connection->Close();
}

void Server::State::Accept() {
  for (int accepted = 0; listener && accepted < kAcceptedATurn; ++accepted) {
    os::UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (fd) {
      Admit(std::move(fd));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EAGAIN) Pause();
    return;
  }
}

// Without descriptors or memory the listener stays ready, and an immediate retry would spin.
void Server::State::Pause() {
  base::Log(base::kWarn, "the broker cannot accept a connection",
            {{"error", base::ErrnoError(errno, "accept").message()}});
  loop.Unwatch(listener.get());
  pause = loop.PostAfter(kAcceptPause, base::IfAlive(this, [](State& state) {
                           if (state.listener && !state.WatchListener().ok()) state.Pause();
                         }));
}

void Server::State::Admit(os::UniqueFd fd) {
  auto peer = ReadPeer(fd.get());
  if (!peer.ok()) return;
  const uid_t user = peer->uid;
  if (!shares.Enter(user)) {
    const std::string line =
        EncodeError(Error(Code::kResourceExhausted,
                          "too many programs are connected to the agent; try again later")) +
        "\n";
    [[maybe_unused]] const ssize_t sent =
        ::send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return;
  }
  const int number = fd.get();
  const auto connection = std::make_shared<Connection>(loop, std::move(fd), std::move(*peer),
                                                       limits, handler, weak_from_this());
  connections[number] = connection;
  if (connection->Start().ok()) return;
  connections.erase(number);
  shares.Leave(user);
}

void Server::State::Ended(int fd) {
  const auto ended = connections.extract(fd);
  if (!ended) return;
  const Connection& connection = *ended.mapped();
  if (connection.waits()) shares.EndWait(connection.peer().uid);
  shares.Leave(connection.peer().uid);
}

// Closes the connection with the most unread output, of the user with the most: never that of a
// program that reads its answers.
void Server::State::OutputGrew() {
  std::size_t all = 0;
  std::map<uid_t, std::size_t> of_user;
  for (const auto& [fd, connection] : connections) {
    all += connection->unread();
    of_user[connection->peer().uid] += connection->unread();
  }
  if (all <= limits.unread_bytes) return;
  const uid_t user = std::ranges::max_element(of_user, [](const auto& a, const auto& b) {
                       return a.second < b.second;
                     })->first;
  std::shared_ptr<Connection> most;
  for (const auto& [fd, connection] : connections)
    if (connection->peer().uid == user && (!most || connection->unread() > most->unread()))
      most = connection;
  base::Log(base::kWarn, "disconnected a client that does not read its responses",
            {{"uid", static_cast<long>(user)},
             {"pid", static_cast<long>(most->peer().pid)},
             {"unread", most->unread()}});
  most->Close();
}

Server::Server(os::Loop& loop, std::string run_dir, std::string group, Handler handler,
               Limits limits)
    : state_(std::make_shared<State>(loop, std::move(run_dir), std::move(group), std::move(handler),
                                     limits)) {}

Server::~Server() { Stop(); }

base::Status Server::Start() { return state_->Start(); }

void Server::Stop() { state_->Stop(); }

const std::string& Server::access() const { return state_->access; }

std::size_t Server::clients() const { return state_->connections.size(); }

}  // namespace penstock::protocol::broker
