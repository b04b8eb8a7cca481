// Walks the program headers of the loaded objects.
#include "os/trim.h"

#include <cstdint>

#include <link.h>
#include <malloc.h>
#include <sys/mman.h>

namespace penstock::os {
namespace {

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

}  // namespace

void TrimLoaded(const std::function<bool(std::string_view path)>& wanted) {
  auto copy = wanted;
  ::dl_iterate_phdr(&Trim, &copy);
}

void TrimHeap() { ::malloc_trim(0); }

std::size_t HeapInUse() {
  const struct mallinfo2 info = ::mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace penstock::os
