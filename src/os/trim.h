// Gives memory back that the kernel would take only when it is short. Knows no program's parts.
#pragma once

#include <functional>
#include <string_view>

namespace penstock::os {

/// Unmaps the pages of code and constants of the loaded objects that are wanted: those that are used again come back from the page cache,
/// by soft faults, the others stay away. `wanted` is asked for each object's path; the program's own is "". Any thread; blocks for some
/// 10 µs, and keeps dlopen waiting meanwhile.
void TrimLoaded(const std::function<bool(std::string_view path)>& wanted);

/// Gives the pages of the heap back on which nothing lives: after much was freed malloc keeps them. Any thread; other threads that allocate
/// meanwhile wait, some milliseconds for tens of MiB.
void TrimHeap();

/// Bytes of the heap on which something lives. Any thread.
std::size_t HeapInUse();

}  // namespace penstock::os
