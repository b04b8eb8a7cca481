// System calls that a vendor's library is denied: calls that administer the machine, trace other
// processes or leave the worker's namespaces (os::DenyCalls itself denies new namespaces by clone).
// Starting programs stays allowed, because a driver creates its device files by nvidia-modprobe;
// those programs inherit the denials. This is not a sandbox: files can be opened as before, so that
// a worker that runs as root can open /proc/PID/mem of other processes, and whatever else root may.
#pragma once

#include <sys/syscall.h>

namespace penstock::app {

/// SYS_open_tree_attr of Linux 6.15, the same on all processors. Older headers lack it.
inline constexpr int kOpenTreeAttr = 467;

// clang-format off
inline constexpr int kDeniedCalls[] = {
    // File systems.
    SYS_chroot, SYS_fsconfig, SYS_fsmount, SYS_fsopen, SYS_fspick, SYS_mount, SYS_mount_setattr, SYS_move_mount, SYS_open_by_handle_at,
    SYS_open_tree, kOpenTreeAttr, SYS_fanotify_init, SYS_pivot_root, SYS_quotactl, SYS_quotactl_fd, SYS_swapoff, SYS_swapon, SYS_umount2,
    // The kernel: modules, BPF programs, kexec, reboot.
    SYS_bpf, SYS_delete_module, SYS_finit_module, SYS_init_module, SYS_kexec_file_load, SYS_kexec_load, SYS_perf_event_open, SYS_reboot,
    SYS_syslog,
    // Other processes.
    SYS_kcmp, SYS_pidfd_getfd, SYS_process_madvise, SYS_process_vm_readv, SYS_process_vm_writev, SYS_ptrace,
    // Namespaces, keys, and frequent means of privilege escalation.
    SYS_add_key, SYS_io_uring_enter, SYS_io_uring_register, SYS_io_uring_setup, SYS_keyctl, SYS_request_key, SYS_setns, SYS_unshare,
    SYS_userfaultfd,
    // The machine's clock, names and process accounting.
    SYS_acct, SYS_adjtimex, SYS_clock_adjtime, SYS_clock_settime, SYS_setdomainname, SYS_sethostname, SYS_settimeofday,
#if defined(__x86_64__)
    SYS_ioperm, SYS_iopl, SYS_modify_ldt,
#endif
};
// clang-format on

}  // namespace penstock::app
