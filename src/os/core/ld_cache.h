// Reads and writes /etc/ld.so.cache, glibc's list of libraries (glibc, sysdeps/generic/dl-cache.h),
// without executing anything.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"
#include "os/core/elf.h"

namespace penstock::os {

struct LdCacheEntry {
  std::string soname;  ///< "libc.so.6"
  std::string path;    ///< "/lib/x86_64-linux-gnu/libc.so.6"
  std::int32_t flags =
      0;  ///< kind of library: 0x0303 x86-64, 0x0a03 aarch64, 0x0003 32-bit; as ldconfig writes it
  std::uint64_t hwcap = 0;  ///< 0: any processor; for a glibc-hwcaps entry without the index, which
                            ///< depends on the file
  std::string hwcaps;  ///< the folder below glibc-hwcaps ("x86-64-v3"); empty if not from such a
                       ///< folder
  bool operator==(const LdCacheEntry&) const = default;
};

/// Reads the new format, also when it follows the old one in the same file. kInvalidArgument: not a
/// cache, a broken one, or one of the other byte order. Text that several entries share counts once
/// per entry, so that a small file cannot expand into a large list.
base::Result<std::vector<LdCacheEntry>> ReadLdCache(std::string_view bytes);

/// The file that ldconfig of glibc 2.32 and later would write for these entries, in the order in
/// which ld.so searches. Of entries that differ only in their path, the earlier one is found first.
std::string WriteLdCache(const std::vector<LdCacheEntry>& entries);

/// Compares two names in ld.so's order, in which digits compare as numbers (glibc, elf/dl-cache.c,
/// _dl_cache_libcmp). Negative, 0 or positive as strcmp(3); 0 also for names that ld.so considers
/// equal.
int CompareLibraryNames(std::string_view left, std::string_view right);

/// The value that ldconfig writes into `flags` for a library (glibc, sysdeps/*/readelflib.c);
/// nothing for machines that are not supported here.
std::optional<std::int32_t> LdCacheFlags(const ElfFacts& library);

}  // namespace penstock::os
