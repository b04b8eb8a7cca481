#include "os/core/system_calls.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <functional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/sched.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/core/file.h"
#include "os/testing/sanitized.h"

namespace penstock::os {
namespace {

using testing::HasSubstr;

constexpr int kCalls[] = {SYS_write, SYS_exit_group, SYS_getppid, SYS_rt_sigreturn};

/// The output and status of a confined process that calls `act`.
std::pair<std::string, int> Confined(const std::function<void()>& act) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe[1], STDERR_FILENO);
    if (!AllowOnly(kCalls, "some-program").ok()) ::_exit(9);
    act();
    ::_exit(0);
  }
  ::close(pipe[1]);
  const auto said = ReadAll(pipe[0], "a pipe");
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return {said.value_or("nothing"), status};
}

TEST(SystemCalls, ThoseThatAreAllowedAreMade) {
  if (kSanitized) GTEST_SKIP() << "sanitizers make system calls of their own";
  EXPECT_EQ(Confined([] { ::getppid(); }), std::pair(std::string(), 0));
}

TEST(SystemCalls, AnyOtherEndsTheProcessWithAMessage) {
  if (kSanitized) GTEST_SKIP() << "sanitizers make system calls of their own";
  for (const int call : {SYS_socket, SYS_execve, SYS_clone, SYS_getuid}) {
    const auto [said, status] = Confined([call] { ::syscall(call, 0, 0, 0, 0, 0); });
    EXPECT_THAT(said,
                HasSubstr("some-program: ended, because it is not permitted to make system call " +
                          std::to_string(call) + ";"));
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  }
}

TEST(SystemCalls, ThoseThatAreDeniedFailAndTheOthersAreMade) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr int kDenied[] = {SYS_getppid, SYS_mount};
    if (!DenyCalls(kDenied).ok()) ::_exit(9);
    for (const int call : kDenied)
      if (::syscall(call, 0, 0, 0, 0, 0) != -1 || errno != EPERM) ::_exit(1);
    if (::getpid() <= 0 || ::socket(AF_UNIX, SOCK_STREAM, 0) < 0) ::_exit(2);
#if defined(__x86_64__)
    if (::syscall(0x40000000 | SYS_getpid) != -1 || errno != EPERM) ::_exit(3);
#endif
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(SystemCalls, OnesThatMakeNamespacesAreDeniedAndThreadsAndProcessesStartAllTheSame) {
  const pid_t child = ::fork();
  if (child == 0) {
    constexpr int kDenied[] = {SYS_unshare};
    if (!DenyCalls(kDenied).ok()) ::_exit(9);
    for (const int flag : {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER,
                           CLONE_NEWPID, CLONE_NEWNET})
      for (const int with : {0, CLONE_NEWUSER}) {
        const long made = ::syscall(SYS_clone, flag | with | SIGCHLD, 0, 0, 0, 0);
        if (made == 0) ::_exit(0);  // the new process
        if (made != -1 || errno != EPERM) ::_exit(1);
      }
    clone_args arguments{};
    arguments.flags = CLONE_NEWUSER;
    if (::syscall(SYS_clone3, &arguments, sizeof arguments) != -1 || errno != ENOSYS) ::_exit(2);
    bool ran = false;
    std::thread([&ran] { ran = true; }).join();
    const pid_t grandchild = ::fork();
    if (grandchild == 0) ::_exit(7);
    int status = 0;
    ::waitpid(grandchild, &status, 0);
    ::_exit(ran && WIFEXITED(status) && WEXITSTATUS(status) == 7 ? 0 : 3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

#if defined(__x86_64__)
TEST(SystemCalls, NeitherAreThoseOfX32) {
  if (kSanitized) GTEST_SKIP() << "sanitizers make system calls of their own";
  EXPECT_THAT(Confined([] { ::syscall(0x40000000 | SYS_getppid); }).first,
              HasSubstr("is not permitted to make system call"));
}
#endif

}  // namespace
}  // namespace penstock::os
