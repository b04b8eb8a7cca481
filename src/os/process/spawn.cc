#include <algorithm>
#include <cerrno>
#include <csignal>

#include <fcntl.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/process/process.h"

namespace penstock::os {
namespace {

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& string : strings) pointers.push_back(const_cast<char*>(string.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

class FileActions {
 public:
  FileActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;

  /// Passes only the requested descriptors. Sources are first copied above all targets, since one
  /// child's number may be another one's source.
  base::Status Give(const SpawnOptions& options) {
    auto pairs = options.descriptors;
    if (options.standard_output >= 0)
      pairs.insert(pairs.end(), {{options.standard_output, 1}, {options.standard_output, 2}});
    int end = 3;
    for (const auto& [own, child] : pairs) end = std::max(end, child + 1);
    std::vector<bool> given(static_cast<std::size_t>(end), false);
    for (const auto& [own, child] : pairs) {
      UniqueFd copy(::fcntl(own, F_DUPFD_CLOEXEC, end));
      if (!copy) return ErrnoError(errno, "pass on a descriptor");
      ::posix_spawn_file_actions_adddup2(&actions_, copy.get(), child);
      given[static_cast<std::size_t>(child)] = true;
      copies_.push_back(std::move(copy));
    }
    for (int fd = 3; fd < end; ++fd) {
      if (!given[static_cast<std::size_t>(fd)]) ::posix_spawn_file_actions_addclose(&actions_, fd);
    }
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, end);
    if (!options.folder.empty())
      ::posix_spawn_file_actions_addchdir_np(&actions_, options.folder.c_str());
    return {};
  }

  const posix_spawn_file_actions_t* get() const { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
  std::vector<UniqueFd> copies_;
};

class Attributes {
 public:
  explicit Attributes(bool new_session) {
    ::posix_spawnattr_init(&attributes_);
    // This process blocks the signals that it receives by descriptor; the child must not inherit
    // that.
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    const int flags =
        POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | (new_session ? POSIX_SPAWN_SETSID : 0);
    ::posix_spawnattr_setflags(&attributes_, static_cast<short>(flags));
  }
  ~Attributes() { ::posix_spawnattr_destroy(&attributes_); }
  Attributes(const Attributes&) = delete;
  Attributes& operator=(const Attributes&) = delete;

  const posix_spawnattr_t* get() const { return &attributes_; }

 private:
  posix_spawnattr_t attributes_{};
};

}  // namespace

base::Result<UniqueFd> OpenPidfd(pid_t pid) {
  UniqueFd fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!fd) return ErrnoError(errno, "open a pidfd of process " + std::to_string(pid));
  return fd;
}

base::Result<Child> Spawn(const SpawnOptions& options) {
  if (options.arguments.empty())
    return base::Error(base::Code::kInvalidArgument, "the program has no name");
  FileActions actions;
  TRY(actions.Give(options));
  const Attributes attributes(options.new_session);
  const auto arguments = Pointers(options.arguments);
  const auto environment = Pointers(options.environment);
  Child child;
  const int error =
      ::posix_spawnp(&child.pid, arguments[0], actions.get(), attributes.get(), arguments.data(),
                     options.environment.empty() ? environ : environment.data());
  if (error != 0) return ErrnoError(error, "start " + options.arguments[0]);
  auto pidfd = OpenPidfd(child.pid);
  if (!pidfd.ok()) {
    ::kill(child.pid, SIGKILL);
    ::waitpid(child.pid, nullptr, 0);
    return pidfd.error().Within("start " + options.arguments[0]);
  }
  child.pidfd = *std::move(pidfd);
  return child;
}

}  // namespace penstock::os
