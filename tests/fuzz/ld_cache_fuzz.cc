// ld.so.cache: an image's own, which the hook reads and writes again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "os/core/ld_cache.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto entries = penstock::os::ReadLdCache({reinterpret_cast<const char*>(data), size});
  if (!entries.ok()) return 0;
  // What was read once is read again from what is written, whatever it says.
  const auto again = penstock::os::ReadLdCache(penstock::os::WriteLdCache(*entries));
  if (again.ok() && again->size() != entries->size()) std::abort();
  if (again.ok() && penstock::os::WriteLdCache(*again) != penstock::os::WriteLdCache(*entries)) std::abort();
  return 0;
}
