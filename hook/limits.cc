// The limits matter because hooks run in the container's control group, which may have none.
#include "hook/limits.h"

#include <csignal>
#include <initializer_list>
#include <utility>

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/core/system_calls.h"

namespace penstock::hook {
namespace {

// The largest image that the other limits allow needs a fraction of both; see bench/RESULTS.md.
constexpr rlim_t kMaxMemory = 256u << 20;
constexpr rlim_t kMaxSeconds = 20;

void ReportAndExit(int) {
  constexpr char text[] =
      "penstock-hook: stopped after 20 s of processor time, the limit of a hook\n";
  (void)!::write(STDERR_FILENO, text, sizeof text - 1);
  ::_exit(1);
}

// The calls that the hooks and the C library need: files by descriptor, in-memory mounts
// (device_node_modification.cc), memory, and ending. tests/integration/hook_test.cc runs every hook
// under this filter.
// clang-format off
constexpr int kCalls[] = {
    SYS_brk, SYS_chdir, SYS_clock_gettime, SYS_close, SYS_dup, SYS_exit, SYS_exit_group, SYS_faccessat, SYS_faccessat2, SYS_fchdir,
    SYS_fchmod, SYS_fchmodat, SYS_fchown, SYS_fcntl, SYS_fsconfig, SYS_fsmount, SYS_fsopen, SYS_fstat, SYS_fstatfs, SYS_fsync,
    SYS_ftruncate, SYS_futex, SYS_getcwd, SYS_getdents64, SYS_getegid, SYS_geteuid, SYS_getgid, SYS_getpid, SYS_getrandom, SYS_getrlimit,
    SYS_gettid, SYS_getuid, SYS_ioctl, SYS_linkat, SYS_lseek, SYS_madvise, SYS_mkdirat, SYS_mmap, SYS_mount, SYS_mount_setattr,
    SYS_move_mount, SYS_mprotect, SYS_mremap, SYS_munmap, SYS_newfstatat, SYS_open_tree, SYS_openat, SYS_openat2, SYS_pread64,
    SYS_prlimit64, SYS_read, SYS_readlinkat, SYS_readv, SYS_renameat, SYS_renameat2, SYS_restart_syscall, SYS_rseq, SYS_rt_sigaction,
    SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_sched_yield, SYS_set_robust_list, SYS_set_tid_address, SYS_setrlimit, SYS_statfs, SYS_statx,
    SYS_symlinkat, SYS_tgkill, SYS_umask, SYS_umount2, SYS_unlinkat, SYS_write, SYS_writev,
#if defined(__x86_64__)  // path-based variants, which newer architectures lack
    SYS_access, SYS_chmod, SYS_lstat, SYS_mkdir, SYS_open, SYS_readlink, SYS_rename, SYS_stat, SYS_unlink,
#endif
};
// clang-format on

}  // namespace

void ConfineSelf() { (void)os::AllowOnly(kCalls, "penstock-hook").ok(); }

void LimitSelf() {
  ::signal(SIGXCPU, ReportAndExit);
  const std::initializer_list<std::pair<int, rlimit>> limits = {
      {RLIMIT_AS, {kMaxMemory, kMaxMemory}},
      {RLIMIT_CPU, {kMaxSeconds, kMaxSeconds + 5}},
      {RLIMIT_CORE, {0, 0}}};
  for (const auto& [which, wanted] : limits) {
    rlimit now{};
    if (::getrlimit(which, &now) != 0) continue;
    const auto lower = [](rlim_t a, rlim_t b) { return a < b ? a : b; };
    const rlimit lowered = {lower(now.rlim_cur, wanted.rlim_cur),
                            lower(now.rlim_max, wanted.rlim_max)};
    ::setrlimit(which, &lowered);
  }
}

}  // namespace penstock::hook
