#include "sim/mps/wire.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace mps {
namespace {

bool Address(const std::string& path, sockaddr_un& address) {
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return false;
  }
  address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  return true;
}

std::string Environment(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value && value[0] ? value : otherwise;
}

ucred Peer(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0)
    peer = {0, static_cast<uid_t>(-1), static_cast<gid_t>(-1)};
  return peer;
}

}  // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) close(fd_);
    fd_ = other.Release();
  }
  return *this;
}

Fd::~Fd() {
  if (fd_ >= 0) close(fd_);
}

int Fd::Release() {
  const int fd = fd_;
  fd_ = -1;
  return fd;
}

Fd Listen(const std::string& path, mode_t mode) {
  sockaddr_un address;
  if (!Address(path, address)) return Fd();
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  unlink(path.c_str());
  if (!fd || bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      chmod(path.c_str(), mode) != 0 || listen(fd.get(), 64) != 0)
    return Fd();
  return fd;
}

Fd Connect(const std::string& path) {
  sockaddr_un address;
  if (!Address(path, address)) return Fd();
  Fd fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd || connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return Fd();
  return fd;
}

bool Send(int socket, std::string_view text, int passed) {
  iovec part{const_cast<char*>(text.data()), text.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (passed >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(header), &passed, sizeof passed);
  }
  return sendmsg(socket, &message, MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

std::optional<Message> Receive(int socket) {
  char text[16384];
  iovec part{text, sizeof text};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t size = 0;
  do size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  while (size < 0 && errno == EINTR);
  if (size <= 0) return std::nullopt;
  Message received{std::string(text, static_cast<std::size_t>(size)), Fd()};
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    received.passed = Fd(fd);
  }
  return received;
}

pid_t PeerPid(int socket) { return Peer(socket).pid; }
uid_t PeerUid(int socket) { return Peer(socket).uid; }

std::string PipeDirectory() { return Environment("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps"); }
std::string LogDirectory() { return Environment("CUDA_MPS_LOG_DIRECTORY", "/var/log/nvidia-mps"); }

std::optional<unsigned long long> Number(std::string_view text) {
  if (text.empty() || text.size() > 18) return std::nullopt;
  unsigned long long number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    number = number * 10 + static_cast<unsigned long long>(c - '0');
  }
  return number;
}

std::string Word(std::string_view text, int which) {
  std::size_t at = 0;
  while (true) {
    at = text.find_first_not_of(" \t\r\n", at);
    if (at == std::string_view::npos) return "";
    const std::size_t end = std::min(text.find_first_of(" \t\r\n", at), text.size());
    if (which-- == 0) return std::string(text.substr(at, end - at));
    at = end;
  }
}

void Log(const char* file, const char* who, const std::string& text) {
  const Fd fd(
      open((LogDirectory() + "/" + file).c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!fd) return;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  std::tm local{};
  localtime_r(&now.tv_sec, &local);
  char time[64];
  std::strftime(time, sizeof time, "%Y-%m-%d %H:%M:%S", &local);
  char head[128];
  std::snprintf(head, sizeof head, "[%s.%03ld %s %5d] ", time, now.tv_nsec / 1000000, who,
                static_cast<int>(getpid()));
  const std::string line = head + text + "\n";
  (void)!write(fd.get(), line.data(), line.size());
}

}  // namespace mps
