#include "protocol/broker/socket.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/process/process.h"

namespace penstock::protocol::broker {
namespace {

constexpr int kBacklog = 128;
#ifndef SO_PEERPIDFD
constexpr int SO_PEERPIDFD = 77;  // Linux 6.5; glibc 2.36 lacks it
#endif

/// How long connect(2) and send(2) wait for a peer with too many connections; zero: indefinitely.
void SetPatience(int socket, base::Duration patience) {
  const auto time = std::chrono::ceil<std::chrono::milliseconds>(patience).count();
  const timeval limit{time / 1000, (time % 1000) * 1000};
  (void)::setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

/// sun_path holds 107 bytes: a longer path goes through the open folder's descriptor.
class Address {
 public:
  static base::Result<Address> Of(const std::string& path) {
    Address address;
    std::string name = path;
    if (name.size() >= sizeof address.socket_.sun_path) {
      const std::filesystem::path whole(path);
      address.folder_ =
          os::UniqueFd(::open(whole.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
      if (!address.folder_) return ErrnoError(errno, "open " + whole.parent_path().string());
      name = "/proc/self/fd/" + std::to_string(address.folder_.get()) + "/" +
             whole.filename().string();
    }
    if (name.size() >= sizeof address.socket_.sun_path) return ErrnoError(ENAMETOOLONG, path);
    address.socket_.sun_family = AF_UNIX;
    std::memcpy(address.socket_.sun_path, name.c_str(), name.size() + 1);
    return address;
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&socket_); }
  static constexpr socklen_t kSize = sizeof(sockaddr_un);

 private:
  sockaddr_un socket_{};
  os::UniqueFd folder_;
};

base::Status GiveTo(const std::string& path, gid_t gid) {
  if (gid != kNoGroup && ::lchown(path.c_str(), static_cast<uid_t>(-1), gid) != 0)
    return ErrnoError(errno, "chown " + path);
  if (::chmod(path.c_str(), gid == kNoGroup ? 0600 : 0660) != 0)
    return ErrnoError(errno, "chmod " + path);
  return {};
}

base::Status BindAndListen(int socket, const std::string& path, gid_t gid) {
  ASSIGN(const Address address, Address::Of(path));
  ::unlink(path.c_str());
  if (::bind(socket, address.get(), Address::kSize) != 0) return ErrnoError(errno, "bind " + path);
  TRY(GiveTo(path, gid));
  if (::listen(socket, kBacklog) != 0) return ErrnoError(errno, "listen on " + path);
  return {};
}

// Returns a pidfd that is certainly the peer's: the kernel's or, before Linux 6.5, one opened by
// pid while the peer still has its end open.
os::UniqueFd OpenPeer(int connection, pid_t pid) {
  int fd = -1;
  socklen_t size = sizeof fd;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERPIDFD, &fd, &size) == 0) return os::UniqueFd(fd);
  if (errno != ENOPROTOOPT && errno != EINVAL) return {};
  auto opened = os::OpenPidfd(pid);
  if (!opened.ok()) return {};
  pollfd end{connection, POLLIN, 0};
  if (::poll(&end, 1, 0) > 0 && (end.revents & POLLHUP) != 0) return {};
  return std::move(*opened);
}

}  // namespace

base::Result<os::UniqueFd> ListenAt(const std::string& path, gid_t gid) {
  os::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return ErrnoError(errno, "create a socket");
  const std::string unfinished = path + ".new";
  base::Status bound = BindAndListen(fd.get(), unfinished, gid);
  if (bound.ok() && ::rename(unfinished.c_str(), path.c_str()) != 0)
    bound = ErrnoError(errno, "rename " + unfinished);
  if (bound.ok()) return fd;
  ::unlink(unfinished.c_str());
  return bound.error();
}

base::Result<os::UniqueFd> ConnectTo(const std::string& path, int& error_number,
                                     std::optional<base::Duration> patience) {
  ASSIGN(const Address address, Address::Of(path));
  os::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (fd && patience)
    SetPatience(fd.get(), std::max<base::Duration>(*patience, std::chrono::milliseconds(1)));
  if (fd && ::connect(fd.get(), address.get(), Address::kSize) == 0) {
    if (patience) SetPatience(fd.get(), {});
    return fd;
  }
  error_number = errno;
  return ErrnoError(error_number, "connect to " + path);
}

base::Result<Peer> ReadPeer(int connection) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0)
    return ErrnoError(errno, "read the peer's credentials");
  Peer peer;
  peer.pid = credentials.pid;
  peer.uid = credentials.uid;
  peer.gid = credentials.gid;
  if (peer.pid > 0) peer.pidfd = OpenPeer(connection, peer.pid);
  return peer;
}

gid_t FindGroup(const std::string& name) {
  std::array<char, 16384> buffer{};
  group entry{};
  group* found = nullptr;
  const int error = ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  return error == 0 && found != nullptr ? found->gr_gid : kNoGroup;
}

std::string GroupName(gid_t gid) {
  std::array<char, 16384> buffer{};
  group entry{};
  group* found = nullptr;
  const int error = ::getgrgid_r(gid, &entry, buffer.data(), buffer.size(), &found);
  return error == 0 && found != nullptr ? found->gr_name : std::to_string(gid);
}

}  // namespace penstock::protocol::broker
