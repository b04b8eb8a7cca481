// Fuzzes an agent's samples as read by `penstock top`.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/samples.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto samples = penstock::api::ParseSamples({reinterpret_cast<const char*>(data), size});
  if (!samples.ok()) return 0;
  const std::string text = penstock::api::ToJson(*samples);
  const auto again = penstock::api::ParseSamples(text);
  if (!again.ok() || penstock::api::ToJson(*again) != text) std::abort();
  return 0;
}
