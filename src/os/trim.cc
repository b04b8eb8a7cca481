// Walks the program headers of the loaded objects.
#include "os/trim.h"

#include <algorithm>

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/core/strings.h"
#include "os/core/file.h"

namespace penstock::os {
namespace {

constexpr std::uint64_t kGrown = 1u << 20, kMuch = 128u << 10;

int Trim(dl_phdr_info* info, std::size_t, void* wanted) {
  if (!(*static_cast<const std::function<bool(std::string_view)>*>(wanted))(info->dlpi_name))
    return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    // Writable segments contain data that cannot be reread from the file.
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_W) != 0) continue;
    const std::uintptr_t page = 4096;
    const std::uintptr_t start = (info->dlpi_addr + segment.p_vaddr) & ~(page - 1);
    const std::uintptr_t end = info->dlpi_addr + segment.p_vaddr + segment.p_filesz;
    ::madvise(reinterpret_cast<void*>(start), end - start, MADV_DONTNEED);
  }
  return 0;
}

struct Statm {
  std::uint64_t resident = 0, shared = 0;  // bytes
};

Statm ReadStatm(const std::string& process) {
  const auto statm = ReadFile("/proc/" + process + "/statm",
                              256);  // proc(5): size, resident, shared, ... in pages
  const auto fields = base::Split(statm.value_or(""), ' ');
  if (fields.size() < 3) return {};
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return {base::ParseUint(fields[1]).value_or(0) * page,
          base::ParseUint(fields[2]).value_or(0) * page};
}

/// This process's private memory beyond the heap in use: what malloc keeps, and what threads and
/// variables need.
std::uint64_t SpareBytes() {
  const struct mallinfo2 heap = ::mallinfo2();
  const std::uint64_t own = AnonymousBytes();
  return own - std::min<std::uint64_t>(own, heap.uordblks + heap.hblkhd);
}

}  // namespace

void TrimLoaded(const std::function<bool(std::string_view path)>& wanted) {
  auto copy = wanted;
  ::dl_iterate_phdr(&Trim, &copy);
}

void TrimHeap() { ::malloc_trim(0); }

std::uint64_t ReadResident(const std::string& process) { return ReadStatm(process).resident; }

std::uint64_t AnonymousBytes() {
  const std::string rollup = ReadFile("/proc/self/smaps_rollup", 4096).value_or("");
  constexpr std::string_view kKey = "\nAnonymous:";  // "Anonymous:         13084 kB"
  const std::size_t key = rollup.find(kKey);
  const std::size_t number =
      key == std::string::npos ? key : rollup.find_first_not_of(' ', key + kKey.size());
  if (number == std::string::npos) {
    const Statm statm = ReadStatm("self");
    return statm.resident - std::min(statm.resident, statm.shared);
  }
  return base::ParseUint(rollup.substr(number, rollup.find(' ', number) - number)).value_or(0)
         << 10;
}

bool SpareMemory::GiveBack() {
  const std::uint64_t spare = SpareBytes();
  if (!giving_back_ && (!least_ || spare <= *least_ + kGrown)) {
    least_ = std::min(least_.value_or(spare), spare);
    return false;
  }
  TrimHeap();
  TrimLoaded([](std::string_view) { return true; });
  least_ = SpareBytes();
  giving_back_ = spare > *least_ + kMuch;
  return giving_back_;
}

}  // namespace penstock::os
