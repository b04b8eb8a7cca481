#include "app/penstock/common/programs.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <optional>

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"

namespace penstock::app {

namespace {

using base::Code;
using base::ErrnoError;
using base::Error;

constexpr std::size_t kMaxOutput = 64u << 10;

/// Returns the process id in a message's credentials; 0 where it has none.
pid_t SenderOf(msghdr& message) {
  for (cmsghdr* control = CMSG_FIRSTHDR(&message); control != nullptr;
       control = CMSG_NXTHDR(&message, control)) {
    if (control->cmsg_level != SOL_SOCKET || control->cmsg_type != SCM_CREDENTIALS) continue;
    ucred credentials{};
    std::memcpy(&credentials, CMSG_DATA(control), sizeof(credentials));
    return credentials.pid;
  }
  return 0;
}

}  // namespace

base::Result<std::string> FindProgram(std::string_view name) {
  const std::string folder = os::OwnFolder();
  const std::string beside = folder + "/" + std::string(name);
  if (::access(beside.c_str(), X_OK) == 0) return beside;
  const std::string libexec = folder + "/../libexec/penstock/" + std::string(name);
  if (::access(libexec.c_str(), X_OK) == 0) return libexec;
  return Error(Code::kNotFound, std::string(name) + " was not found: it is neither at " + beside +
                                    " nor at " + libexec);
}

int Reap(const os::Child& child) {
  int status = 0;
  while (::waitpid(child.pid, &status, 0) < 0)
    if (errno != EINTR) return 1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

base::Status RunToEnd(const std::vector<std::string>& arguments) {
  const os::UniqueFd output(::memfd_create("output", MFD_CLOEXEC));
  if (!output) return ErrnoError(errno, "create a file in memory");
  ASSIGN(const os::Child child,
         os::Spawn({.arguments = arguments, .standard_output = output.get()}));
  const int status = Reap(child);
  if (status == 0) return {};
  ::lseek(output.get(), 0, SEEK_SET);
  const std::string text(base::Trim(os::ReadAll(output.get(), "output", kMaxOutput).value_or("")));
  return Error(
      Code::kUnknown,
      text.empty() ? arguments.front() + " exited with status " + std::to_string(status) : text);
}

base::Result<os::Command::Outcome> RunFor(const std::vector<std::string>& arguments,
                                          base::Duration deadline) {
  os::Loop loop("command");
  base::Result<os::Command::Outcome> result = Error(Code::kCancelled, "not started");
  std::optional<os::Command> command;
  loop.Post([&] {
    os::Command::Options options{
        .deadline = deadline, .most_output = 4u << 20, .errors_apart = true};
    options.spawn.arguments = arguments;
    command.emplace(loop, std::move(options), [&](base::Result<os::Command::Outcome> outcome) {
      result = std::move(outcome);
      loop.Stop();
    });
  });
  loop.Run();
  return result;
}

base::Result<NotifySocket> NotifySocket::Make() {
  os::UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const int on = 1;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // Binding with the family alone makes the kernel choose an abstract name (unix(7), autobind).
  if (!fd || ::setsockopt(fd.get(), SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) != 0 ||
      ::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(sa_family_t)) != 0)
    return ErrnoError(errno, "create the socket for the agent's notifications");
  socklen_t length = sizeof(address);
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0)
    return ErrnoError(errno, "read the name of the socket for the agent's notifications");
  const std::size_t name = length - offsetof(sockaddr_un, sun_path);
  return NotifySocket(std::move(fd), "@" + std::string(address.sun_path + 1, name - 1));
}

std::vector<std::string> NotifySocket::Environment() const {
  static constexpr std::string_view kName = "NOTIFY_SOCKET=";
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry)
    if (!std::string_view(*entry).starts_with(kName)) environment.emplace_back(*entry);
  environment.push_back(std::string(kName) + name_);
  return environment;
}

NotifySocket::Notice NotifySocket::Read(pid_t from) const {
  Notice notice;
  while (true) {
    std::array<char, 4096> text;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(ucred))> control{};
    iovec part{text.data(), text.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t count = ::recvmsg(fd_.get(), &message, MSG_CMSG_CLOEXEC);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return notice;
    if (SenderOf(message) != from) continue;
    for (const std::string& line :
         base::Split({text.data(), static_cast<std::size_t>(count)}, '\n')) {
      if (line == "READY=1") notice.ready = true;
      if (line.starts_with("STATUS=")) notice.status = line.substr(7);
    }
  }
}

}  // namespace penstock::app
