// Returns memory to the kernel early, which would otherwise reclaim it only under memory pressure.
#pragma once

#include <functional>
#include <string_view>

namespace penstock::os {

/// Unmaps the pages of code and constants of the loaded objects for which `wanted` returns true; it
/// is called with each object's path ("" for the program itself). Pages that are used again come
/// back from the page cache by soft faults. Any thread; blocks for some 10 µs, during which dlopen
/// waits.
void TrimLoaded(const std::function<bool(std::string_view path)>& wanted);

/// Returns unused heap pages to the kernel: malloc keeps them after large frees. Any thread; other
/// threads that allocate wait meanwhile, some milliseconds for tens of MiB.
void TrimHeap();

/// Heap bytes in use. Any thread.
std::size_t HeapInUse();

}  // namespace penstock::os
