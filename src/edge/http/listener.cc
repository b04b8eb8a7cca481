// Opens sockets to listen on: a host and port, all addresses, or a path.
#include "edge/http/listener.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

namespace penstock::edge::http::internal {

namespace {

using base::Code;
using base::ErrnoError;
using base::Error;

constexpr int kBacklog = 64;
constexpr int kFlags = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

base::Result<AddressList> Find(const Address& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  const std::string port = std::to_string(address.port);
  addrinfo* found = nullptr;
  // A number first: then no name service is loaded into the process.
  hints.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV;
  int status = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
  if (status == EAI_NONAME) {
    hints.ai_flags = AI_NUMERICSERV;
    status = getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
  }
  if (status != 0) return Error(Code::kInvalidArgument, "find the address of \"" + address.host + "\": " + gai_strerror(status));
  return AddressList(found, &freeaddrinfo);
}

std::uint16_t PortOf(int fd) {
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0) return 0;
  if (bound.ss_family == AF_INET6) return ntohs(reinterpret_cast<const sockaddr_in6*>(&bound)->sin6_port);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&bound)->sin_port);
}

/// An open socket, or errno's error.
base::Result<os::UniqueFd> Bind(int family, const sockaddr* address, socklen_t length, const std::string& doing) {
  os::UniqueFd fd(::socket(family, kFlags, 0));
  if (!fd) return ErrnoError(errno, doing);
  const int on = 1;
  const int off = 0;
  if (family != AF_UNIX) ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (family == AF_INET6) ::setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (::bind(fd.get(), address, length) != 0 || ::listen(fd.get(), kBacklog) != 0) {
    if (errno == EADDRINUSE) return Error(Code::kAlreadyExists, doing + ": another program listens there already");
    return ErrnoError(errno, doing);
  }
  return fd;
}

/// All addresses of the machine: one socket for both families, IPv4 alone where there is no IPv6.
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

/// Removes a socket that a killed program left: one that refuses connections. Leaves everything else alone.
void RemoveStale(const sockaddr_un& address) {
  struct stat status {};
  if (::lstat(address.sun_path, &status) != 0 || !S_ISSOCK(status.st_mode)) return;
  const os::UniqueFd probe(::socket(AF_UNIX, kFlags, 0));
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0 && errno == ECONNREFUSED)
    ::unlink(address.sun_path);
}

base::Result<Listener> ListenAt(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path))
    return Error(Code::kInvalidArgument, "listen on " + path + ": the path is too long for a unix socket");
  std::memcpy(address.sun_path, path.data(), path.size());
  RemoveStale(address);
  ASSIGN(os::UniqueFd fd, Bind(AF_UNIX, reinterpret_cast<const sockaddr*>(&address), sizeof(address), "listen on unix:" + path));
  if (::chmod(path.c_str(), 0660) != 0) return ErrnoError(errno, "set the mode of " + path);
  return Listener{.fd = std::move(fd), .where = "unix:" + path};
}

}  // namespace

base::Result<Listener> Listen(const Address& address) {
  if (!address.path.empty()) return ListenAt(address.path);
  const bool six = address.host.find(':') != std::string::npos;
  const std::string shown = six ? "[" + address.host + "]" : address.host;
  const std::string doing = "listen on " + shown + ":" + std::to_string(address.port);
  auto fd = address.host.empty() ? BindAll(address.port, doing) : BindHost(address, doing);
  if (!fd.ok()) return fd.error();
  Listener listener{.fd = *std::move(fd)};
  listener.port = PortOf(listener.fd.get());
  listener.where = "http://" + (shown.empty() ? "0.0.0.0" : shown) + ":" + std::to_string(listener.port);
  return listener;
}

}  // namespace penstock::edge::http::internal
