// Restricts which system calls this process may make from now on (seccomp(2)), without a library.
#pragma once

#include <span>
#include <vector>

#include <linux/filter.h>

#include "base/core/result.h"

namespace penstock::os {

/// A filter that allows these calls of the processor's native ABI (no 32-bit calls), and sends
/// SIGSYS for any other.
std::vector<sock_filter> AllowedCalls(std::span<const int> calls);

/// Installs that filter permanently for this thread and the threads that it starts. Any other call
/// ends the process with status 1 and a line on standard error that names `program` (which must
/// stay valid) and the number of the call. kUnimplemented if the kernel has no seccomp filters.
base::Status AllowOnly(std::span<const int> calls, const char* program);

/// Refuses these calls, and every call that is not of the processor's native ABI, with EPERM:
/// permanently, for this thread, the threads and processes that it starts, and the programs that
/// they execute. Also refuses clone with new namespaces, and answers clone3 with ENOSYS, as before
/// Linux 5.3: a filter cannot see clone3's flags, and callers of clone3 fall back to clone.
/// kUnimplemented if the kernel has no seccomp filters.
base::Status DenyCalls(std::span<const int> calls);

}  // namespace penstock::os
