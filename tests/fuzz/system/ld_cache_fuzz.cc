// Fuzzes an image's own ld.so.cache, which the hook reads and rewrites.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "os/core/ld_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto entries = penstock::os::ReadLdCache({reinterpret_cast<const char*>(data), size});
  if (!entries.ok()) return 0;
  // A cache that could be read can be read again after it was written.
  const auto again = penstock::os::ReadLdCache(penstock::os::WriteLdCache(*entries));
  if (again.ok() && again->size() != entries->size()) std::abort();
  if (again.ok() && penstock::os::WriteLdCache(*again) != penstock::os::WriteLdCache(*entries))
    std::abort();
  return 0;
}
