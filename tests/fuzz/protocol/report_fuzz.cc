// Fuzzes an agent's report as read by clients.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto report = penstock::api::ParseReport({reinterpret_cast<const char*>(data), size});
  if (!report.ok()) return 0;
  const std::string text = penstock::api::ToJson(*report);
  const auto again = penstock::api::ParseReport(text);
  if (!again.ok() || penstock::api::ToJson(*again) != text) std::abort();
  return 0;
}
