#include "protocol/http/listener.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "protocol/http/activation.h"

namespace penstock::protocol::http::internal {

namespace {

constexpr int kBacklog = SOMAXCONN;  // a probe that finds it full retries after a second
/// The kernel keeps this much unread output for each connection (and as much again for itself),
/// instead of up to 4 MiB.
constexpr int kSendBuffer = 128 << 10;
constexpr int kFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

base::Result<AddressList> Find(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  const std::string port = std::to_string(address.port);
  addrinfo* found = nullptr;
  // A number is tried first: then no name service is loaded into the process.
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  int status = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
  if (status == EAI_NONAME) {
    hints.ai_flags = AI_NUMERICSERV;
    status = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
  }
  if (status != 0)
    return Error(Code::kInvalidArgument,
                 "resolve the address of \"" + address.host + "\": " + gai_strerror(status));
  return AddressList(found, &freeaddrinfo);
}

base::Result<sockaddr_storage> BoundTo(int fd) {
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0)
    return ErrnoError(errno, "read the address of a socket");
  return bound;
}

std::uint16_t PortOf(const sockaddr_storage& bound) {
  if (bound.ss_family == AF_INET6)
    return ntohs(reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
}

bool IsLoopback(const sockaddr_storage& bound) {
  constexpr std::uint32_t kNet = 127;
  if (bound.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in&>(bound).sin_addr.s_addr) >> 24 == kNet;
  const in6_addr& six = reinterpret_cast<const sockaddr_in6&>(bound).sin6_addr;
  return bound.ss_family == AF_INET6 &&
         (IN6_IS_ADDR_LOOPBACK(&six) || (IN6_IS_ADDR_V4MAPPED(&six) && six.s6_addr[12] == kNet));
}

/// Returns an open socket, or errno's error.
base::Result<os::UniqueFd> Bind(int family, const sockaddr* address, socklen_t length,
                                const std::string& doing) {
  os::UniqueFd fd(::socket(family, kFlags, 0));
  if (!fd) return ErrnoError(errno, doing);
  const int on = 1;
  const int off = 0;
  if (family != AF_UNIX) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (family == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &kSendBuffer,
               sizeof(kSendBuffer));  // accepted connections inherit it
  if (::bind(fd.get(), address, length) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    if (errno == EADDRINUSE)
      return Error(Code::kAlreadyExists, doing + ": another program already listens there");
    return ErrnoError(errno, doing);
  }
  return fd;
}

/// Listens on all addresses of the machine: one socket for both families, only IPv4 if there is no
/// IPv6.
base::Result<os::UniqueFd> BindAll(std::uint16_t port, const std::string& doing) {
  sockaddr_in6 six{};
  six.sin6_family = AF_INET6;
  six.sin6_port = htons(port);
  auto fd = Bind(AF_INET6, reinterpret_cast<const sockaddr*>(&six), sizeof(six), doing);
  if (fd.ok() || fd.error().code() == Code::kAlreadyExists) return fd;
  sockaddr_in four{};
  four.sin_family = AF_INET;
  four.sin_port = htons(port);
  return Bind(AF_INET, reinterpret_cast<const sockaddr*>(&four), sizeof(four), doing);
}

base::Result<os::UniqueFd> BindHost(const Address& address, const std::string& doing) {
  ASSIGN(const AddressList list, Find(address));
  base::Result<os::UniqueFd> fd = Error(Code::kNotFound, doing + ": the name has no address");
  for (const addrinfo* at = list.get(); at != nullptr; at = at->ai_next) {
    fd = Bind(at->ai_family, at->ai_addr, at->ai_addrlen, doing);
    if (fd.ok() || fd.error().code() == Code::kAlreadyExists) break;
  }
  return fd;
}

/// Removes a socket that a killed program left, which refuses connections. Leaves any other file.
void RemoveStale(const sockaddr_un& address) {
  struct stat status {};
  if (::lstat(address.sun_path, &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  const os::UniqueFd probe(::socket(AF_UNIX, kFlags, 0));
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 &&
      errno == ECONNREFUSED)
    ::unlink(address.sun_path);
}

base::Result<Listener> ListenAt(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return Error(Code::kInvalidArgument,
                 "listen on " + path + ": the path is too long for a unix socket");
  std::memcpy(address.sun_path, path.data(), path.size());
  RemoveStale(address);
  ASSIGN(os::UniqueFd fd, Bind(AF_UNIX, reinterpret_cast<const sockaddr*>(&address),
                               sizeof(address), "listen on unix:" + path));
  if (::chmod(path.c_str(), 0660) != 0) return ErrnoError(errno, "set the mode of " + path);
  return Listener{.fd = std::move(fd), .where = "unix:" + path, .path = path, .local = true};
}

base::Result<Listener> ListenAtHost(const Address& address) {
  const bool six = address.host.find(':') != std::string::npos;
  const std::string shown = six ? "[" + address.host + "]" : address.host;
  const std::string doing = "listen on " + shown + ":" + std::to_string(address.port);
  auto fd = address.host.empty() ? BindAll(address.port, doing) : BindHost(address, doing);
  if (!fd.ok()) return fd.error();
  ASSIGN(const sockaddr_storage bound, BoundTo(fd->get()));
  const std::uint16_t port = PortOf(bound);
  return Listener{
      .fd = *std::move(fd),
      .where = "http://" + (shown.empty() ? "0.0.0.0" : shown) + ":" + std::to_string(port),
      .port = port,
      .local = IsLoopback(bound)};
}

std::string TextOf(int family, const void* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const char* written = ::inet_ntop(family, address, text.data(), text.size());
  return written != nullptr ? written : "";
}

/// Describes a socket that another program opened by the address to which it is bound.
base::Result<Listener> Describe(os::UniqueFd fd) {
  ASSIGN(const sockaddr_storage bound, BoundTo(fd.get()));
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof(kSendBuffer));
  if (bound.ss_family == AF_UNIX) {
    const auto& address = reinterpret_cast<const sockaddr_un&>(bound);
    return Listener{
        .fd = std::move(fd), .where = std::string("unix:") + address.sun_path, .local = true};
  }
  const std::uint16_t port = PortOf(bound);
  const std::string host =
      bound.ss_family == AF_INET6
          ? "[" + TextOf(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(bound).sin6_addr) + "]"
          : TextOf(AF_INET, &reinterpret_cast<const sockaddr_in&>(bound).sin_addr);
  return Listener{.fd = std::move(fd),
                  .where = "http://" + host + ":" + std::to_string(port),
                  .port = port,
                  .local = IsLoopback(bound)};
}

base::Result<std::vector<Listener>> TakeFromServiceManager(const std::string& name) {
  ASSIGN(auto fds, TakeActivated(name));
  std::vector<Listener> listeners;
  for (os::UniqueFd& fd : fds) {
    ASSIGN(Listener listener, Describe(std::move(fd)));
    listeners.push_back(std::move(listener));
  }
  return listeners;
}

}  // namespace

base::Result<std::vector<Listener>> Listen(const Address& address) {
  if (address.activated) return TakeFromServiceManager(*address.activated);
  auto listener = address.path.empty() ? ListenAtHost(address) : ListenAt(address.path);
  if (!listener.ok()) return listener.error();
  std::vector<Listener> listeners;
  listeners.push_back(*std::move(listener));
  return listeners;
}

std::string PeerOf(int fd) {
  sockaddr_storage peer{};
  socklen_t length = sizeof peer;
  if (::getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0 ||
      peer.ss_family == AF_UNIX)
    return "unix";
  if (peer.ss_family == AF_INET)
    return TextOf(AF_INET, &reinterpret_cast<const sockaddr_in&>(peer).sin_addr);
  in6_addr address = reinterpret_cast<const sockaddr_in6&>(peer).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&address)) return TextOf(AF_INET, &address.s6_addr[12]);
  if (IN6_IS_ADDR_LOOPBACK(&address)) return TextOf(AF_INET6, &address);
  std::memset(&address.s6_addr[8], 0, 8);
  return TextOf(AF_INET6, &address) + "/64";
}

}  // namespace penstock::protocol::http::internal
