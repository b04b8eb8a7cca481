// Connections on the control loop: nothing here blocks, everything is bounded.
#include "edge/broker/server.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <utility>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "edge/broker/client.h"
#include "edge/broker/socket.h"
#include "os/core/file.h"

namespace penstock::edge::broker {
namespace {

using base::Code;
using base::Error;

constexpr base::Duration kAcceptPause = std::chrono::seconds(1);

class Connection;
using Ended = std::function<void(int fd)>;

/// One peer: reads a request, waits for its answer, reads the next.
class Connection final : public Session, public std::enable_shared_from_this<Connection> {
 public:
  Connection(os::Loop& loop, os::UniqueFd fd, Peer peer, const ServerLimits& limits, std::shared_ptr<const Server::Handler> handler,
             Ended ended)
      : loop_(loop), fd_(std::move(fd)), peer_(std::move(peer)), limits_(limits), handler_(std::move(handler)), ended_(std::move(ended)) {}

  base::Status Start();
  const Peer& peer() const override { return peer_; }
  void Progress(const std::string& line) override { Write(line); }
  void Answer(const std::string& line) override;
  void Close() override;
  void OnClosed(std::function<void()> callback) override { closed_ = std::move(callback); }

 private:
  void Handle(std::uint32_t events);
  void Read();
  void Serve();
  void ServeLine(const std::string& line);
  void Refuse(const Error& error);
  void Write(const std::string& line);
  void Flush();
  void Settle();
  void RestartIdle();

  os::Loop& loop_;
  os::UniqueFd fd_;
  Peer peer_;
  const ServerLimits limits_;
  std::shared_ptr<const Server::Handler> handler_;
  Ended ended_;
  std::function<void()> closed_;
  std::string input_, output_;
  bool serving_ = false;   // a request is not answered yet
  bool in_serve_ = false;  // Serve is on the stack
  bool no_more_ = false;   // the peer sends nothing more, or nothing more is read
  std::uint32_t events_ = 0;
  base::TimerId idle_ = 0;
};

base::Status Connection::Start() {
  events_ = EPOLLIN | EPOLLRDHUP;
  TRY(loop_.Watch(fd_.get(), events_, [self = weak_from_this()](std::uint32_t events) {
    if (const auto connection = self.lock()) connection->Handle(events);
  }));
  RestartIdle();
  return {};
}

void Connection::Handle(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) Flush();
  if (!fd_) return;
  if ((events & (EPOLLIN | EPOLLRDHUP)) != 0) Read();
  if (!fd_) return;
  // Who has gone, or will send nothing more while it waits, has given up.
  if ((events & (EPOLLHUP | EPOLLERR)) != 0 || ((events & EPOLLRDHUP) != 0 && serving_)) return Close();
  if ((events & EPOLLRDHUP) != 0) no_more_ = true;
  Settle();
}

void Connection::Read() {
  if (serving_ || no_more_) return;
  std::array<char, 16384> chunk;
  while (fd_ && !serving_ && !no_more_) {
    const ssize_t got = ::recv(fd_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got == 0) no_more_ = true;
    if (got < 0 && errno != EAGAIN && errno != EINTR) return Close();
    if (got <= 0) break;
    input_.append(chunk.data(), static_cast<std::size_t>(got));
    Serve();
  }
}

// One request at a time: the rest of the input waits for the answer.
void Connection::Serve() {
  if (std::exchange(in_serve_, true)) return;
  while (fd_ && !serving_) {
    const auto end = input_.find('\n');
    if (std::min(end, input_.size()) >= kMostLineBytes) {
      Refuse(Error(Code::kInvalidArgument, "a request is longer than 64 KiB; the connection ends"));
      break;
    }
    if (end == std::string::npos) break;
    const std::string line = input_.substr(0, end);
    input_.erase(0, end + 1);
    ServeLine(line);
  }
  in_serve_ = false;
}

void Connection::ServeLine(const std::string& line) {
  const auto request = DecodeRequest(line);
  if (!request.ok()) return Write(EncodeError(request.error()));
  serving_ = true;
  loop_.Cancel(std::exchange(idle_, 0));
  (*handler_)(shared_from_this(), *request);
}

// What cannot even be cut into lines.
void Connection::Refuse(const Error& error) {
  input_.clear();
  no_more_ = true;
  Write(EncodeError(error));
}

void Connection::Answer(const std::string& line) {
  if (!fd_ || !serving_) return;
  serving_ = false;
  closed_ = nullptr;
  Write(line);
  RestartIdle();
  Serve();
  Settle();
}

void Connection::Write(const std::string& line) {
  if (!fd_) return;
  output_ += line;
  // A line break inside JSON is only ever layout.
  std::replace(output_.end() - static_cast<std::ptrdiff_t>(line.size()), output_.end(), '\n', ' ');
  output_ += '\n';
  Flush();
  if (output_.size() > limits_.output_bytes) Close();
}

void Connection::Flush() {
  while (fd_ && !output_.empty()) {
    const ssize_t sent = ::send(fd_.get(), output_.data(), output_.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) return Close();
    output_.erase(0, static_cast<std::size_t>(sent));
    if (!serving_) RestartIdle();
  }
}

// Waits for what can happen next: a closed input is not polled again, and nothing is read while a request is served.
void Connection::Settle() {
  if (!fd_) return;
  if (no_more_ && !serving_ && output_.empty()) return Close();
  std::uint32_t events = 0;
  if (!no_more_) events |= EPOLLRDHUP;
  if (!no_more_ && !serving_) events |= EPOLLIN;
  if (!output_.empty()) events |= EPOLLOUT;
  if (events == events_) return;
  events_ = events;
  if (!loop_.Rewatch(fd_.get(), events).ok()) Close();
}

void Connection::RestartIdle() {
  loop_.Cancel(idle_);
  if (!fd_) return;
  idle_ = loop_.PostAfter(limits_.idle, [self = weak_from_this()] {
    if (const auto connection = self.lock()) connection->Close();
  });
}

void Connection::Close() {
  if (!fd_) return;
  const auto self = shared_from_this();  // `ended_` drops the server's reference
  loop_.Cancel(idle_);
  loop_.Unwatch(fd_.get());
  const int number = fd_.get();
  const auto closed = std::exchange(closed_, nullptr);
  output_.clear();
  fd_.Reset();
  if (ended_) ended_(number);
  if (closed) closed();
}

}  // namespace

struct Server::State : std::enable_shared_from_this<Server::State> {
  os::Loop& loop;
  const std::string run_dir;
  const std::string group;
  const std::shared_ptr<const Handler> handler;
  const Limits limits;
  const uid_t own_user = ::geteuid();
  std::string access;
  os::UniqueFd listener;
  base::TimerId pause = 0;
  std::map<int, std::shared_ptr<Connection>> connections;

  State(os::Loop& l, std::string dir, std::string name, Handler h, Limits most)
      : loop(l), run_dir(std::move(dir)), group(std::move(name)), handler(std::make_shared<const Handler>(std::move(h))), limits(most) {}

  base::Status Start();
  void Stop();
  base::Status WatchListener();
  void Accept();
  void Admit(os::UniqueFd fd);
  bool Full(const Peer& peer) const;
  void Pause();
};

base::Status Server::State::Start() {
  TRY(os::MakeDirectories(run_dir));
  const std::string path = SocketPath(run_dir);
  const gid_t gid = FindGroup(group);
  base::Result<os::UniqueFd> made = ListenAt(path, gid);
  access = gid == kNoGroup ? "only its owner: there is no group " + group : "members of group " + group;
  if (!made.ok() && gid != kNoGroup && made.error().code() == Code::kPermissionDenied) {
    made = ListenAt(path, kNoGroup);
    access = "only its owner: the agent may not give the socket to group " + group;
  }
  if (!made.ok()) return made.error();
  listener = std::move(*made);
  return WatchListener();
}

base::Status Server::State::WatchListener() {
  return loop.Watch(listener.get(), EPOLLIN, [self = weak_from_this()](std::uint32_t) {
    if (const auto state = self.lock()) state->Accept();
  });
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
  while (listener) {
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

// No descriptors or no memory: the listener stays ready, so looking at once again would spin.
void Server::State::Pause() {
  base::Log(base::kWarn, "the broker cannot accept a connection", {{"error", base::ErrnoError(errno, "accept").message()}});
  loop.Unwatch(listener.get());
  pause = loop.PostAfter(kAcceptPause, [self = weak_from_this()] {
    const auto state = self.lock();
    if (state && state->listener && !state->WatchListener().ok()) state->Pause();
  });
}

bool Server::State::Full(const Peer& peer) const {
  const bool privileged = peer.uid == 0 || peer.uid == own_user;
  const std::size_t kept = std::min(limits.for_root, limits.clients);
  return connections.size() >= (privileged ? limits.clients : limits.clients - kept);
}

void Server::State::Admit(os::UniqueFd fd) {
  auto peer = ReadPeer(fd.get());
  if (!peer.ok()) return;
  if (Full(*peer)) {
    const std::string line =
        EncodeError(Error(Code::kResourceExhausted, "too many programs are connected to the agent; try again later")) + "\n";
    [[maybe_unused]] const ssize_t sent = ::send(fd.get(), line.data(), line.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return;
  }
  const int number = fd.get();
  const auto connection =
      std::make_shared<Connection>(loop, std::move(fd), std::move(*peer), limits, handler, [self = weak_from_this()](int ended) {
        if (const auto state = self.lock()) state->connections.erase(ended);
      });
  if (connection->Start().ok()) connections[number] = connection;
}

Server::Server(os::Loop& loop, std::string run_dir, std::string group, Handler handler, Limits limits)
    : state_(std::make_shared<State>(loop, std::move(run_dir), std::move(group), std::move(handler), limits)) {}

Server::~Server() { Stop(); }

base::Status Server::Start() { return state_->Start(); }

void Server::Stop() { state_->Stop(); }

const std::string& Server::access() const { return state_->access; }

std::size_t Server::clients() const { return state_->connections.size(); }

}  // namespace penstock::edge::broker
