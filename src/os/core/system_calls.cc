// Assembles classic BPF filters for seccomp (Documentation/userspace-api/seccomp_filter.rst).
#include "os/core/system_calls.h"

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <linux/audit.h>
#include <linux/sched.h>
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

void WriteText(const char* text) { (void)!::write(STDERR_FILENO, text, std::strlen(text)); }

// Runs in a signal handler, so it must not allocate.
void ReportAndEnd(int, siginfo_t* about, void*) {
  char digits[12] = {};
  char* first = digits + sizeof digits - 1;
  unsigned number = static_cast<unsigned>(about->si_syscall);
  do { *--first = static_cast<char>('0' + number % 10); } while ((number /= 10) != 0);
  WriteText(ended);
  WriteText(": ended, because it is not permitted to make system call ");
  WriteText(first);
  WriteText("; this is a bug in the program, or an attack on it\n");
  ::_exit(1);
}

sock_filter Statement(unsigned code, std::size_t value) {
  return BPF_STMT(static_cast<std::uint16_t>(code), static_cast<std::uint32_t>(value));
}
sock_filter SkipIf(std::size_t value, std::uint8_t if_equal, std::uint8_t otherwise = 0) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(value), if_equal,
                  otherwise);
}
sock_filter SkipIfAny(std::uint32_t bits, std::uint8_t if_any, std::uint8_t otherwise) {
  return BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, if_any, otherwise);
}

constexpr std::ptrdiff_t kAfterNumber =
    4;  // index in the filter after which the call's number is loaded

/// Builds a filter with three results: for listed calls, for other calls, and for calls of a
/// foreign ABI.
std::vector<sock_filter> Filter(std::span<const int> calls, std::uint32_t listed,
                                std::uint32_t others, std::uint32_t foreign) {
  std::vector<sock_filter> program = {
      Statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)), SkipIf(kMachine, 1),
      Statement(BPF_RET | BPF_K, foreign),
      Statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))};
  for (const int call : calls) {
    program.push_back(SkipIf(static_cast<std::size_t>(call), 0, 1));
    program.push_back(Statement(BPF_RET | BPF_K, listed));
  }
  program.push_back(Statement(BPF_RET | BPF_K, others));
  return program;
}

/// Permanent, for this thread and those that it starts.
base::Status PutInForce(std::vector<sock_filter> instructions) {
  const sock_fprog filter{static_cast<unsigned short>(instructions.size()), instructions.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
      ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0)
    return {};
  return base::ErrnoError(errno, "restrict the process to the system calls that it needs");
}

}  // namespace

std::vector<sock_filter> AllowedCalls(std::span<const int> calls) {
  return Filter(calls, SECCOMP_RET_ALLOW, SECCOMP_RET_TRAP, SECCOMP_RET_TRAP);
}

base::Status AllowOnly(std::span<const int> calls, const char* program) {
  ended = program;
  struct sigaction action {};
  action.sa_sigaction = ReportAndEnd;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSYS, &action, nullptr);
  return PutInForce(AllowedCalls(calls));
}

base::Status DenyCalls(std::span<const int> calls) {
  constexpr std::uint32_t kRefuse = SECCOMP_RET_ERRNO | EPERM;
  // CLONE_NEWTIME is not included: its bit is part of clone's exit signal, and only clone3 and
  // unshare support it.
  constexpr std::uint32_t kNamespaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
                                        CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;
  std::vector<sock_filter> program = Filter(calls, kRefuse, SECCOMP_RET_ALLOW, kRefuse);
  // The flags are the lower half of the first argument, on processors of either byte order.
  program.insert(
      program.begin() + kAfterNumber,
      {SkipIf(SYS_clone3, 0, 1), Statement(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
       SkipIf(SYS_clone, 0, 4), Statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
       SkipIfAny(kNamespaces, 0, 1), Statement(BPF_RET | BPF_K, kRefuse),
       Statement(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))});
#if defined(__x86_64__)
  // x32 calls have the same architecture value in the filter, but set a bit of their own in the
  // number (arch/x86/include/uapi/asm/unistd.h).
  constexpr std::uint32_t kX32 = 0x40000000;
  program.insert(program.begin() + kAfterNumber,
                 {SkipIfAny(kX32, 0, 1), Statement(BPF_RET | BPF_K, kRefuse)});
#endif
  return PutInForce(std::move(program));
}

}  // namespace penstock::os
