// Which system calls a process may make from now on (seccomp(2)), without a library.
#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include <linux/filter.h>

#include "base/core/result.h"

namespace penstock::os {

/// A filter that admits these calls of the processor's own kind (no 32-bit ones), and sends SIGSYS for any other.
std::vector<sock_filter> AllowedCalls(std::span<const int> calls);

/// Puts it in force, for good, for this thread and those that it starts. Whoever makes another call is ended with status 1 and a line on
/// standard error that names `program` (which must live as long) and the call's number. kUnimplemented where the kernel has no filters.
base::Status AllowOnly(std::span<const int> calls, const char* program);

/// Refuses these calls with EPERM, and every call of another kind than the processor's own, for good, to this thread and those that it
/// starts, and to the programs that these become. Also refuses clone with new namespaces, and answers clone3 with ENOSYS, as before
/// Linux 5.3: a filter cannot see its flags, and whoever calls it knows to call clone then. kUnimplemented where the kernel has no filters.
base::Status DenyCalls(std::span<const int> calls);

}  // namespace penstock::os
