// Fuzzes dcgm-exporter's counters files: written by users, mounted from a ConfigMap, possibly
// half-written.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "api/compat/nvidia/counters.h"

namespace compat = penstock::api::compat;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static constexpr std::array<compat::CounterField, 3> kFields = {
      {{.name = "DCGM_FI_DEV_SM_CLOCK", .new_name = "DCGM_FI_DEV_SM_CLOCK_HERTZ"},
       {.name = "DCGM_FI_DEV_GPU_TEMP"},
       {.name = "DCGM_FI_DRIVER_VERSION", .text = true}}};
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  (void)compat::LooksLikeCounters(text);
  const auto counters = compat::ParseCounters(text, "fuzz", kFields);
  if (!counters.ok()) {
    if (counters.error().code() != penstock::base::Code::kInvalidArgument ||
        counters.error().message().rfind("fuzz", 0) != 0)
      std::abort();
    return 0;
  }
  // Accepted rows are accepted again unchanged.
  const auto again = compat::CheckCounters(counters->rows, "rows", kFields);
  if (!again.ok() || again->rows != counters->rows || !again->remarks.empty()) std::abort();
  return 0;
}
