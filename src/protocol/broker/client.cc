#include "protocol/broker/client.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>

#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "protocol/broker/protocol.h"
#include "protocol/broker/socket.h"

namespace penstock::protocol::broker {
namespace {

using Time = std::chrono::steady_clock;

constexpr std::size_t kMaxAnswerBytes = 16u << 20;

Error NoAgent(const std::string& path) {
  return {Code::kUnavailable,
          "no agent answers at " + path +
              ": start one with `penstock up`, or pass the --run-dir of the running one"};
}

Error Refused(const std::string& path) {
  struct stat socket {};
  const std::string refused = "no permission to use the agent at " + path + ": ";
  if (::stat(path.c_str(), &socket) != 0)
    return {Code::kPermissionDenied, refused + "its folder is not accessible to you"};
  if ((socket.st_mode & 0060) != 0060)
    return {Code::kPermissionDenied,
            refused +
                "only root and the agent's user may; to admit others, as root create the "
                "group penstock and restart the agent"};
  return {Code::kPermissionDenied, refused + "you are not in group " + GroupName(socket.st_gid) +
                                       " (root can add you with `usermod -aG " +
                                       GroupName(socket.st_gid) +
                                       " USER`; it takes effect at your next login)"};
}

// Milliseconds for poll, rounded up; -1 without a deadline.
int Left(const std::optional<Time::time_point>& deadline) {
  if (!deadline) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*deadline - Time::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, std::numeric_limits<int>::max()));
}

}  // namespace

std::string SocketPath(const std::string& run_dir) { return run_dir + "/penstock.sock"; }

base::Result<Client> Client::Connect(const std::string& run_dir,
                                     std::optional<base::Duration> patience) {
  const std::string path = SocketPath(run_dir);
  int error_number = 0;
  auto fd = ConnectTo(path, error_number, patience);
  if (fd.ok()) return Client(std::move(*fd), path);
  if (error_number == EAGAIN)
    return Error(Code::kDeadlineExceeded, "the agent at " + path + " accepts no connection");
  if (error_number == EACCES || error_number == EPERM) return Refused(path);
  if (error_number == ENOENT || error_number == ECONNREFUSED || error_number == ENOTDIR ||
      fd.error().code() == Code::kNotFound)
    return NoAgent(path);
  return fd.error();
}

pid_t Client::Pid() const {
  const auto peer = ReadPeer(fd_.get());
  return peer.ok() ? peer->pid : 0;
}

base::Status Client::SendLine(std::string_view line) {
  const std::string text = std::string(line) + "\n";
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t now = ::send(fd_.get(), text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (now < 0 && errno == EINTR) continue;
    // The agent may have sent the reason before it closed: the caller reads it next.
    if (now < 0 && (errno == EPIPE || errno == ECONNRESET)) return {};
    if (now < 0) return ErrnoError(errno, "send to the agent");
    sent += static_cast<std::size_t>(now);
  }
  return {};
}

base::Result<std::string> Client::ReadLine(std::optional<base::Duration> timeout) {
  std::optional<Time::time_point> deadline;
  if (timeout) deadline = Time::now() + *timeout;
  std::array<char, 16384> chunk;
  std::size_t searched = 0;
  for (;;) {
    if (const auto end = buffer_.find('\n', searched); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    searched = buffer_.size();
    if (buffer_.size() > kMaxAnswerBytes)
      return Error(Code::kDataLoss, "the agent's answer is longer than 16 MiB");
    // A negative descriptor is not waited for.
    std::array<pollfd, 2> ready{{{fd_.get(), POLLIN, 0}, {interrupt_, POLLIN, 0}}};
    const int polled = ::poll(ready.data(), ready.size(), Left(deadline));
    if (polled < 0 && errno == EINTR) continue;
    if (polled < 0) return ErrnoError(errno, "wait for the agent");
    if (polled == 0)
      return Error(Code::kDeadlineExceeded, "the agent at " + path_ + " did not answer within " +
                                                base::FormatDuration(*timeout));
    if (ready[1].revents != 0)
      return Error(Code::kCancelled, "interrupted while the agent at " + path_ + " worked");
    const ssize_t got = ::recv(fd_.get(), chunk.data(), chunk.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0)
      return Error(Code::kUnavailable, "the agent at " + path_ + " exited before it answered");
    buffer_.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

base::Result<std::string> Client::Query(std::string_view line, base::Duration timeout) {
  TRY(SendLine(line));
  ASSIGN(const std::string answer, ReadLine(timeout));
  return DecodeAny(answer);
}

}  // namespace penstock::protocol::broker
