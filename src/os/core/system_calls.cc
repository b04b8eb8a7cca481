// Instructions of classic BPF by hand (Documentation/userspace-api/seccomp_filter.rst).
#include "os/core/system_calls.h"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace penstock::os {
namespace {

#if defined(__aarch64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kMachine = AUDIT_ARCH_X86_64;
#endif

const char* ended = "";

void Say(const char* text) { (void)!::write(STDERR_FILENO, text, std::strlen(text)); }

// In a signal handler: nothing that allocates.
void SayAndEnd(int, siginfo_t* about, void*) {
  char digits[12] = {};
  char* first = digits + sizeof digits - 1;
  unsigned number = static_cast<unsigned>(about->si_syscall);
  do { *--first = static_cast<char>('0' + number % 10); } while ((number /= 10) != 0);
  Say(ended);
  Say(": ended, because it is not to make system call ");
  Say(first);
  Say("; this is a mistake of the program, or somebody attacked it\n");
  ::_exit(1);
}

sock_filter Statement(unsigned code, std::size_t value) {
  return BPF_STMT(static_cast<std::uint16_t>(code), static_cast<std::uint32_t>(value));
}
sock_filter SkipIf(std::size_t value, std::uint8_t if_equal, std::uint8_t otherwise = 0) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(value), if_equal, otherwise);
}

}  // namespace

std::vector<sock_filter> AllowedCalls(std::span<const int> calls) {
  std::vector<sock_filter> program = {Statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)), SkipIf(kMachine, 1),
                                      Statement(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
                                      Statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int call : calls) {
    program.push_back(SkipIf(static_cast<std::size_t>(call), 0, 1));
    program.push_back(Statement(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
  }
  program.push_back(Statement(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
  return program;
}

base::Status AllowOnly(std::span<const int> calls, const char* program) {
  std::vector<sock_filter> instructions = AllowedCalls(calls);
  const sock_fprog filter{static_cast<unsigned short>(instructions.size()), instructions.data()};
  ended = program;
  struct sigaction action {};
  action.sa_sigaction = SayAndEnd;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSYS, &action, nullptr);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0) return {};
  return base::ErrnoError(errno, "confine the process to the system calls that it needs");
}

}  // namespace penstock::os
