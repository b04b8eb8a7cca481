// Fuzzes the summation of usage records, which other programs may have edited, and the usage
// checkpoint that one agent leaves for the next.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "node/usage/state.h"
#include "node/usage/sums.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace penstock;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto record = node::usage::DecodeRecord(text); record.ok()) {
    node::usage::Sums sums({.by = {"day", "namespace", "label:x"},
                            .since = {},
                            .until = base::ParseTime("2027-01-01T00:00:00.000Z")});
    sums.Add(*record);
    const auto report = sums.Finish();
    if (!report.ok() || !node::usage::DecodeRecord(node::usage::EncodeRecord(*record)).ok())
      std::abort();
    if (!api::ParseUsageReport(api::ToJson(*report)).ok()) std::abort();
  }
  if (const auto state = node::usage::DecodeState(text, "usage.json"); state.ok())
    if (!node::usage::DecodeState(node::usage::EncodeState(*state), "usage.json").ok())
      std::abort();
  return 0;
}
