// /etc/ld.so.cache: glibc's list of libraries (glibc, sysdeps/generic/dl-cache.h), read and written without executing anything.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/core/result.h"

namespace penstock::os {

struct LdCacheEntry {
  std::string soname;       ///< "libc.so.6"
  std::string path;         ///< "/lib/x86_64-linux-gnu/libc.so.6"
  std::int32_t flags = 0;   ///< kind of library: 0x0303 x86-64, 0x0a03 aarch64, 0x0003 32-bit; as ldconfig writes it
  std::uint64_t hwcap = 0;  ///< 0: any processor
  bool operator==(const LdCacheEntry&) const = default;
};

/// Reads the new format, also where the old one stands before it. kInvalidArgument: no cache, or a broken one.
base::Result<std::vector<LdCacheEntry>> ReadLdCache(std::string_view bytes);

/// The file that ldconfig of glibc 2.32 and later would write of these entries, in the order that ld.so searches by.
std::string WriteLdCache(std::vector<LdCacheEntry> entries);

}  // namespace penstock::os
