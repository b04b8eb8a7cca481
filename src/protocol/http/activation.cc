// Reads LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES. Opens nothing.
#include "protocol/http/activation.h"

#include <cerrno>
#include <cstdlib>
#include <optional>

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/core/strings.h"

namespace penstock::protocol::http::internal {

namespace {

constexpr int kFirst = 3;  // SD_LISTEN_FDS_START
constexpr std::uint64_t kMax = 1024;

std::string Variable(const char* name) {
  const char* value = ::getenv(name);
  return value != nullptr ? value : "";
}

/// Returns how many sockets are meant for this process. For its parent or child, the numbers would
/// be those of other descriptors.
std::uint64_t CountDescriptors() {
  const auto pid = base::ParseUint(Variable("LISTEN_PID"));
  const auto count = base::ParseUint(Variable("LISTEN_FDS"));
  if (!pid || *pid != static_cast<std::uint64_t>(::getpid()) || !count || *count > kMax) return 0;
  return *count;
}

std::optional<int> Option(int fd, int option) {
  int value = 0;
  socklen_t length = sizeof value;
  if (::getsockopt(fd, SOL_SOCKET, option, &value, &length) != 0) return std::nullopt;
  return value;
}

Status Prepare(int fd, const std::string& name) {
  if (Option(fd, SO_ACCEPTCONN) != 1 || Option(fd, SO_TYPE) != SOCK_STREAM)
    return Error(Code::kInvalidArgument,
                 "the socket \"" + name +
                     "\" of systemd is not listening; its unit needs ListenStream= and Accept=no");
  const int flags = ::fcntl(fd, F_GETFL);
  if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0 || flags < 0 ||
      ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0)
    return base::ErrnoError(errno, "use the socket \"" + name + "\" of systemd");
  return {};
}

}  // namespace

base::Result<std::vector<os::UniqueFd>> TakeActivated(const std::string& name) {
  const auto names = base::Split(Variable("LISTEN_FDNAMES"), ':');
  const std::uint64_t count = CountDescriptors();
  std::vector<os::UniqueFd> taken;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string own = i < names.size() && !names[i].empty()
                                ? names[i]
                                : "unknown";  // as in sd_listen_fds_with_names(3)
    const int fd = kFirst + static_cast<int>(i);
    if ((!name.empty() && own != name) || ::fcntl(fd, F_GETFD) == -1) continue;
    if ((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0)
      continue;  // taken already, or opened by this process since
    TRY(Prepare(fd, own));
    taken.emplace_back(fd);
  }
  if (!taken.empty()) return taken;
  const std::string wanted = name.empty() ? "no socket" : "no socket named \"" + name + "\"";
  return Error(Code::kNotFound,
               "systemd passed " + wanted +
                   (count > 0 ? ", but " + base::Join(names, ", ") : std::string()) +
                   "; start the agent with its socket unit (penstock-agent.socket)");
}

}  // namespace penstock::protocol::http::internal
