// Returns memory to the kernel early, which would otherwise reclaim it only under memory pressure.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
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

/// Bytes of memory that a process has, from /proc/PROCESS/statm; PROCESS is a pid. 0 where there is
/// none. Linux counts for each processor from 6.2 on: on a machine with many this is some MiB off.
std::uint64_t ReadResident(const std::string& process);

/// Bytes of this process's memory that no file backs, from /proc/self/smaps_rollup: exact. Where a
/// kernel has none, from /proc/self/statm. Takes some 100 µs.
std::uint64_t AnonymousBytes();

/// This process's memory beyond what it uses. Keep one, and call it every few seconds, always on
/// one thread.
class SpareMemory {
 public:
  /// Returns the memory that a burst of work freed, and the code that only the burst needed, to the
  /// system: the heap would keep it however quiet the process is afterwards. Returns true if it
  /// found much, so that there may soon be more. Blocks for some milliseconds.
  bool GiveBack();

 private:
  std::optional<std::uint64_t> least_;  // spare bytes, since the heap was trimmed
  bool giving_back_ = false;            // after a burst, the last call still found much
};

}  // namespace penstock::os
