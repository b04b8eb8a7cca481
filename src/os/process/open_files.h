// Finds the processes that have a file open, by the names that the kernel reports.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

namespace penstock::os {

/// The processes with an open file whose path ends with one of `paths`, in ascending order. Opens
/// no such file, since a process may name files that never answer. Reads at most `most` open files
/// in all, so a process with very many of them can hide others. Needs permission to trace the
/// processes.
std::vector<pid_t> ProcessesWith(const std::string& proc, const std::vector<std::string>& paths,
                                 std::size_t most = 100'000);

}  // namespace penstock::os
